"""Tests of `kraftwire/cli/quorum`."""
