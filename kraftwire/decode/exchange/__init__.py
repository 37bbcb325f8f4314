"""Requests together with their responses; see README.md."""
