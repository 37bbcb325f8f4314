"""Printers: how one version is written as JSON, straight from its bytes."""
