"""Stages: what each one makes of tables that a test writes down."""
