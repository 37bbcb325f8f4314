"""Which frames, batches, records and entries a run shows."""
