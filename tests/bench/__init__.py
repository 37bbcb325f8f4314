"""Measurements against other programs; see README.md. Run with ``python -m tests.bench``."""
