"""Clusters on this machine: kraftwire controllers, and real brokers of Kafka on them."""
