"""Authentication and authorization as Kafka has them: exchanges, formats, decisions; no I/O."""
