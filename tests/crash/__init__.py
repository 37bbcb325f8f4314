"""Crash images: power failures at every operation, and every disk that they may leave."""
