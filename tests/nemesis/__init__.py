"""Real processes under faults, and a history of what they acknowledged; see README.md."""
