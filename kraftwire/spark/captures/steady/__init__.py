"""Frames that are alike, many at once; see README.md."""
