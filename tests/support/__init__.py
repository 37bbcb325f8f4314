"""Helpers that several tests share; README.md lists them."""
