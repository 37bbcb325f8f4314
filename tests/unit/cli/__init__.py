"""Tests of `kraftwire/cli`."""
