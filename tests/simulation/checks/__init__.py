"""Histories made by hand for the checks, and mistakes in the checks."""
