"""A replicated key-value map."""
