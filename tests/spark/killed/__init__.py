"""Tests of programs that are killed with -9 and restarted."""
