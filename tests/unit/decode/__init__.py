"""Tests of `kraftwire/decode`."""
