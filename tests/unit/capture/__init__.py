"""Tests of `kraftwire/capture`."""
