"""Clusters under the shipped controller: its decisions, with simulated brokers in virtual time."""
