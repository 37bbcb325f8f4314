"""Decoders: how one version is read."""
