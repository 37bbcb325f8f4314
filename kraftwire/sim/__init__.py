"""Whole clusters on virtual time: a network, disks and clocks that fail, and what must hold."""
