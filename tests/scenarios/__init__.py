"""Text scenarios of the Raft core."""
