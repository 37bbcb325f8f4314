"""Tests of `kraftwire/log`."""
