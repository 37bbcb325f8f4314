"""Filters: which frames of captures, and which lines of log files, a run shows."""
