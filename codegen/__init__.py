"""Compiles Kafka message schemas into version-specialised Python."""
