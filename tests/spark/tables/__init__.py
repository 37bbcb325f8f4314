"""Tests of schemas of tables."""
