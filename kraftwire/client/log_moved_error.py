"""The error of readers that resume: the records read before are no longer there."""

from __future__ import annotations

from kraftwire.errors import StorageError

__all__ = ["LogMovedError"]


class LogMovedError(StorageError):
    """The log is not the one that was read before: it was truncated, or starts after our offset."""
