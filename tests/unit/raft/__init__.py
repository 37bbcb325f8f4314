"""Tests of `kraftwire/raft`."""
