"""The story of topics in print."""
