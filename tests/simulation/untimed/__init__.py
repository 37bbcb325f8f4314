"""Tests of the clusters without time."""
