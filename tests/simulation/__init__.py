"""Simulated clusters: their checkers, their disks, their rules, and what breaks them."""
