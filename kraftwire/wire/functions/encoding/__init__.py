"""Encoders: how one version is written."""
