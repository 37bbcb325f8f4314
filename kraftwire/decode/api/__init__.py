"""What `kraftwire.decode` offers to programs; import it from there. See README.md."""
