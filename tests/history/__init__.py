"""Bugs that Raft implementations have had, each as a scenario that this one passes."""
