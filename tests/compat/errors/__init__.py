"""What clients make of errors: raise them, try again, or swallow them; each API, each version."""
