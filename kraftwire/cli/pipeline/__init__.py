"""The commands that turn captures and logs into tables and a report."""
