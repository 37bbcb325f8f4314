"""Prints captures and logs: lines, trees, bytes, statistics, stories, comparisons."""
