"""The story of transactions: their beginnings, contents and ends; see README.md."""
