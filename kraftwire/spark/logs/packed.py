"""Compressions that are recognized but not read, by the first bytes of a file."""

from __future__ import annotations

__all__ = ["UNREAD_PACKINGS", "packing_of"]

_MAGICS = ((b"\x04\x22\x4d\x18", "lz4"),)

UNREAD_PACKINGS = tuple(name for _, name in _MAGICS)


def packing_of(head: bytes) -> str | None:
    """Return the name of the compression that a file begins with, None for any other file."""
    return next((name for magic, name in _MAGICS if head.startswith(magic)), None)
