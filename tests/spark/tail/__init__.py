"""Tests of logs and folders that are followed as they grow."""
