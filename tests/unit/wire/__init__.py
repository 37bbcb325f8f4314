"""Tests of `kraftwire/wire`."""
