"""Raft cores whose peers, disk and clocks are the test."""
