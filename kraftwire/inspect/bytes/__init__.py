"""Every byte with its range, its field and its value."""
