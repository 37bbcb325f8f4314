"""Stories in print: for people and as JSON."""
