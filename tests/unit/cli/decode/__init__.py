"""Tests of `kraftwire/cli/decode`."""
