"""Tests of `kraftwire/replica`."""
