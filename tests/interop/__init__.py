"""Tests in which real Kafka is the judge."""
