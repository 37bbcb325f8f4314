"""Tests of `tools/capture`."""
