"""A capture that several processes read, each a share of its connections."""
