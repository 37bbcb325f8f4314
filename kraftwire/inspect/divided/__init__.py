"""A capture of which several processes read stretches, and lines that do not show it."""
