"""What a connection speaks, which response belongs to which request, and the loop over packets."""
