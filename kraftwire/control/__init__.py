"""The control interface of a server with rules: HTTP, with JSON."""
