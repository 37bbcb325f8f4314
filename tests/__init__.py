"""The tests and the measurements; see README.md."""
