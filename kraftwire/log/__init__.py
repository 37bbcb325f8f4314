"""Kafka's log directory: segments, indexes, checkpoints and the small state files next to them."""
