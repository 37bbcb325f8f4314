"""Tests of the modules at the top of `kraftwire`."""
