"""Tests of clusters for tests, without Java."""
