"""A run of the decode tool: inputs, filters, totals."""
