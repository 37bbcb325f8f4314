"""Bytes: varints, frames, and the slow, explaining readers and writers behind the fast ones."""
