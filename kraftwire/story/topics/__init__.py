"""The story of topics: their changes, producers and consumers; see README.md."""
