"""What failed for clients, what they sent again, and how it ended."""
