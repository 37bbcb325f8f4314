"""Brokers under the active controller: clusters of the world without time; see README.md."""
