"""Errors of a quorum of processes."""

from __future__ import annotations

from kraftwire.errors import KraftwireError

__all__ = ["QuorumError"]


class QuorumError(KraftwireError):
    """A node ended or timed out; the text has the end of its log."""
