"""Tests of `kraftwire/client`."""
