"""Tests of `kraftwire/decode/render`."""
