"""Record a real Kafka under load into a capture file; see README.md."""
