"""Tests of the control interface."""
