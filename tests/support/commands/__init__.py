"""Commands in processes of their own."""
