"""Many similar frames at once; see README.md."""
