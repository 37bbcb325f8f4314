"""Tests of `kraftwire/node/handlers`."""
