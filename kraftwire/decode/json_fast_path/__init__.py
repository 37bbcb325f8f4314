"""A fast path from ordinary frames to their JSON lines, around everything that explains."""
