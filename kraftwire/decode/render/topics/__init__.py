"""The story of topics: what was done to them, who writes and who reads them; see README.md."""
