"""Tests of `kraftwire/security`."""
