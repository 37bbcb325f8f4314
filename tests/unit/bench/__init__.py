"""Tests of what benchmarks decide by themselves."""
