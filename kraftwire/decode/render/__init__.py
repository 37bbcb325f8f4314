"""The outputs of captures and logs for people and programs; see README.md."""
