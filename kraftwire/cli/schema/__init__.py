"""The command that shows messages, their layout and their history."""
