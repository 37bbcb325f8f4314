"""Tests of `kraftwire/capture/connections`."""
