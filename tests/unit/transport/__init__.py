"""Tests of `kraftwire/transport`."""
