"""What a compressed batch may become, so that few bytes cannot take much memory."""

from __future__ import annotations

from kraftwire.errors import WireError
from kraftwire.limits import RECORDS_COUNT_FREE, RECORDS_COUNT_RATIO_MAX

__all__ = ["BombError", "count_limit"]


class BombError(WireError):
    """A batch would become far more than its bytes account for; nothing of it is read."""


def count_limit(compressed_size: int) -> int:
    """Records that so many compressed bytes may hold."""
    return RECORDS_COUNT_FREE + RECORDS_COUNT_RATIO_MAX * compressed_size
