"""Helpers for people who work on this project; each runs as ``python -m tools.NAME``."""
