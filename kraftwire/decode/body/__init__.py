"""What is in a frame: header, body, record batches, nested messages, findings, secrets."""
