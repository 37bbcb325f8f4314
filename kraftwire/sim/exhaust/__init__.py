"""Exhaustive search of all clusters within bounds, each state visited once."""
