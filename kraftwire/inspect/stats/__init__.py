"""Statistics of captures and logs."""
