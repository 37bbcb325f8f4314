"""Captures of network traffic: packets become Kafka requests and responses, in order."""
