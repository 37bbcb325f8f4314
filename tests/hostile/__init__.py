"""Attacks by whoever reaches a port: what a node promises all the same."""
