"""The engine in C against the Python code that it replaces."""
