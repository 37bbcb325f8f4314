"""Tests of `kraftwire/decode/render/raft`."""
