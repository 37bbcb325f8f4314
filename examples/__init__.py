"""Small programs to copy."""
