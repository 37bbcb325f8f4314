"""The timeline of a quorum in print."""
