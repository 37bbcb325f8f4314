"""TCP connections: the protocol that each speaks, its requests and responses."""
