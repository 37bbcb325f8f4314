"""Tests of runs of the pipeline."""
