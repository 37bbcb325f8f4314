"""Test suites of other clients, run against a server that speaks Kafka's protocol."""
