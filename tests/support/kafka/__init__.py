"""Kafka's own programs: jars, processes, tools."""
