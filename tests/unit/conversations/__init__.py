"""Tests of `kraftwire/decode/pairing`."""
