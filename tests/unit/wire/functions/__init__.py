"""Tests of kraftwire.wire.functions."""
