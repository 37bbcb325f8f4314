"""What `decode`, `stats`, `story` and `records` share: options, and the run of their inputs."""
