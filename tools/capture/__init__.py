"""A proxy in front of any Kafka that records the traffic as pcapng, without privileges."""
