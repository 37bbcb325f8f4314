"""A proxy in front of a cluster: clients reach each node through a listener here."""
