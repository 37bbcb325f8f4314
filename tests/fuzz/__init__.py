"""Damaged and hostile bytes; see README.md."""
