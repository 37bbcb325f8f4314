"""Tests of the state that a metadata log describes."""
