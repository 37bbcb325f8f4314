"""The story of transactions: how they began, what they wrote, how they ended; see README.md."""
