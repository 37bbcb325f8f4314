"""House rules as tests; see README.md."""
