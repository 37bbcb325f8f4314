"""Captures and frames made for tests."""
