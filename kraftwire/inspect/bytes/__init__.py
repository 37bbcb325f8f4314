"""Annotated hex dumps: every byte with its range, field and value."""
