"""The command that measures a quorum under load."""
