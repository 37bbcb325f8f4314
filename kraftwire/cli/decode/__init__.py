"""The command that decodes captures and log directories."""
