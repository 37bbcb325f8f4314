"""Tests of what is killed with -9 and started again."""
