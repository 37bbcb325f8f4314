"""A quorum of three over mutual TLS, and the keys for it."""
