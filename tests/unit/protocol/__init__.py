"""Tests of `kraftwire/protocol`."""
