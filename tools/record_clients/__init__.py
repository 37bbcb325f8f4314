"""Records many client libraries that use one Kafka at the same time."""
