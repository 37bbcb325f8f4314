"""Compiles Kafka message schemas into Python: classes with a reader and a writer each."""
