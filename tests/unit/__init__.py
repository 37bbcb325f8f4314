"""Tests of one module each, without processes, network or Java."""
