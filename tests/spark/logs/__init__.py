"""Tests of columns, log directories and live quorums as tables."""
