"""Where two log directories, or two captures of the same traffic, begin to differ."""
