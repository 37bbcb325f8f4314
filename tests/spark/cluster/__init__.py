"""Tests of the pipeline on a standalone cluster."""
