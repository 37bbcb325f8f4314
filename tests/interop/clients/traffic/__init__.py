"""Everyday use of each client on a real cluster: topics, records, groups, transactions."""
