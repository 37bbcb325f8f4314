"""Tests of the tables made from captures."""
