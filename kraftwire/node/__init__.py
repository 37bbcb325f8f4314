"""The quorum node: properties files, connections, the task that drives the Raft core."""
