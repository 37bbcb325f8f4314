"""Snapshots on disk; see README.md."""
