"""Log directories made for tests."""
