"""Attacks by anyone who can reach a port, and what a node guarantees despite them."""
