"""The functions that decode and encode one version of a message: planned, printed, built."""
