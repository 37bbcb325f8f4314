"""Limits on expansion, so that a few bytes cannot take much memory."""

from __future__ import annotations

from kraftwire.errors import WireError
from kraftwire.records.limits import (
    HEADER_BYTES_MIN,
    HEADERS_COUNT_FREE,
    RECORDS_COUNT_FREE,
    RECORDS_COUNT_RATIO_MAX,
)

__all__ = ["BombError", "count_limit", "headers_limit"]


class BombError(WireError):
    """A batch, or a record in it, would expand far beyond its bytes."""


def count_limit(compressed_size: int) -> int:
    """Return how many records `compressed_size` bytes may hold."""
    return RECORDS_COUNT_FREE + RECORDS_COUNT_RATIO_MAX * compressed_size


def headers_limit(size: int) -> int:
    """Return how many headers a record may have in a batch of this size (compressed if it is)."""
    return HEADERS_COUNT_FREE + size // HEADER_BYTES_MIN
