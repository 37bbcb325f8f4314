"""The report on the tables: what it says, and how it looks."""
