"""Paths of input files as text that tables can hold."""

from __future__ import annotations

import os

__all__ = ["readable"]


def readable(path: str | os.PathLike[str]) -> str:
    """A path as UTF-8: bytes of a name that are none are written as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
