"""Nodes, real and played."""
