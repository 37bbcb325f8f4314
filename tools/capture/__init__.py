"""A proxy before any Kafka that records the traffic as pcapng, without privileges."""
