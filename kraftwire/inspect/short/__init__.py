"""The fastest path to the output of common frames: straight from their bytes; see README.md."""
