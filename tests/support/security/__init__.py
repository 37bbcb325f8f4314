"""Certificates, tickets and users of secured clusters."""
