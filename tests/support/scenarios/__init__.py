"""Scenarios as text: their format, and the commands of each kind."""
