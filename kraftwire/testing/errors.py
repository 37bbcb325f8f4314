"""What goes wrong with a quorum of processes."""

from __future__ import annotations

from kraftwire.errors import KraftwireError

__all__ = ["QuorumError"]


class QuorumError(KraftwireError):
    """A node ended or did not do in time what it should; the text has the end of its log."""
