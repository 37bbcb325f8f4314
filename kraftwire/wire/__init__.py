"""Bytes: varints, frames, and readers and writers that explain what the fast ones refuse."""
