"""A way out of a lost majority: the furthest surviving log goes on as a quorum of its own."""
