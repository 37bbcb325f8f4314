"""Stages: what each one derives from tables that a test writes."""
