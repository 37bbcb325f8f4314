"""Tests of `kraftwire/inspect`."""
