"""Secured connections: TLS, then a login, on a trio stream; loaded only where one is wanted."""
