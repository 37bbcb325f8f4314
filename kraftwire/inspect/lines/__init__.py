"""One line per exchange, batch, index entry or state file."""
