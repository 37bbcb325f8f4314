"""Tests of `kraftwire/records`."""
