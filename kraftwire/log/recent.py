"""The last appends to a segment, kept in memory because nearly every read is of one of them.

A leader reads what it has just written once for each follower and once for its state machine. Whole
appends are kept; a read of exactly one of them is served from memory, any other from the file.
"""

from __future__ import annotations

from collections import deque

from kraftwire.limits import RECENT_APPENDS_BYTES, RECENT_APPENDS_MAX

__all__ = ["RecentAppends"]


class RecentAppends:
    """A few appends by position, the oldest given up first. Units: bytes."""

    __slots__ = ("_kept", "_size")

    def __init__(self) -> None:
        self._kept: deque[tuple[int, bytes]] = deque()
        self._size = 0

    def add(self, position: int, data: bytes | memoryview) -> None:
        """Keep bytes that have been written at a position, which follows all earlier ones.

        A view is not kept, because it would hold all of the memory that it is a part of; it evicts
        older appends all the same.
        """
        kept = data if type(data) is bytes else b""
        self._kept.append((position, kept))
        self._size += len(kept)
        while self._size > RECENT_APPENDS_BYTES or len(self._kept) > RECENT_APPENDS_MAX:
            self._size -= len(self._kept.popleft()[1])

    def find(self, start: int, stop: int) -> bytes | None:
        """Return the append with exactly this range of positions, None if it is not kept."""
        for position, data in reversed(self._kept):
            if position <= start:
                return data if position == start and position + len(data) == stop else None
        return None

    def clear(self) -> None:
        """Forget all appends, because the file is truncated."""
        self._kept.clear()
        self._size = 0
