"""Records of the metadata log, and histories of them."""
