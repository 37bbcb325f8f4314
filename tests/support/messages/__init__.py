"""Messages of any values, and golden ones."""
