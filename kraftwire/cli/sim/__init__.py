"""The commands that simulate clusters on virtual time."""
