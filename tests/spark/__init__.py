"""Tests of the Spark package."""
