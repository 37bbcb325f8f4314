"""Paths of input files as text that tables can hold."""

from __future__ import annotations

import os

__all__ = ["readable"]


def readable(path: str | os.PathLike[str]) -> str:
    """Return a path as UTF-8: invalid bytes of a name are written as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
