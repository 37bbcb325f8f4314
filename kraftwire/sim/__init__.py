"""Tests the Raft core in simulated clusters whose networks, disks and clocks fail."""
