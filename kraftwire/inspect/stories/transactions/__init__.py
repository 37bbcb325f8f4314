"""The story of transactions in print."""
