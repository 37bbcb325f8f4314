"""Whole clusters in virtual time: networks, disks and clocks that fail, and invariants."""
