"""Tests of `kraftwire/replica/lost_majority`."""
