"""Authentication and authorization as Kafka has them: machines, texts, decisions; no I/O."""
