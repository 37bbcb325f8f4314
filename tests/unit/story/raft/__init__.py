"""Tests of `kraftwire/story/raft`."""
