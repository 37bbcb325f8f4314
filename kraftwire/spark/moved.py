"""The error of every reader that goes on where it stopped: what was read is not there any more."""

from __future__ import annotations

from kraftwire.errors import StorageError

__all__ = ["LogMovedError"]


class LogMovedError(StorageError):
    """The log is not the one that was read before: truncated, or begun anew after our offset."""
