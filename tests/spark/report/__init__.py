"""The report on the tables: its contents and its look."""
