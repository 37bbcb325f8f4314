"""Every cluster within bounds: all orders of everything, each state looked at once."""
