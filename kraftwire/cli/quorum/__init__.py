"""The commands that describe, watch and change a metadata quorum."""
