"""Tests of `kraftwire/decode/files`."""
