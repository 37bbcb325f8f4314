"""Decisions of Kafka's active controller as pure functions, and the image that they start from."""
