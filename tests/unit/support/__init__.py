"""Tests of `tests/support`."""
