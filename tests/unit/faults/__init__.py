"""Tests of the rules for injected faults."""
