"""Tests of `kraftwire/node`."""
