"""Errors of a quorum of processes."""

from __future__ import annotations

from kraftwire.errors import KraftwireError


class QuorumError(KraftwireError):
    """A node ended or timed out; the text has the end of its log."""
