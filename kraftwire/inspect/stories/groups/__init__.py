"""The story of groups in print."""
