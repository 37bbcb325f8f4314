"""Writes the JSON lines of ordinary frames without decoding them into messages."""
