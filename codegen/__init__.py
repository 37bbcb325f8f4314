"""Compile Kafka message schemas into version-specialised Python; imports nothing of kraftwire."""
