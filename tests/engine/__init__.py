"""The engine in C against the Python that it stands in for."""
