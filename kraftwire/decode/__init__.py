"""Captures and files of log directories, decoded; see README.md for the ways in."""
