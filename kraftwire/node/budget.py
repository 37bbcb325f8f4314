"""The memory that all connections of a node may hold together.

A connection reports how many bytes it holds: requests that are incomplete or unanswered, and
answers that its peer has not read. The overhead of the connection itself counts too. Above the
limit the connections that have held bytes for longest are closed, not the newest: a well-behaved
peer reads its answers at once.
"""

from __future__ import annotations

from typing import Protocol

from kraftwire.limits import EVICTED_BYTES_MIN, OPEN_CONNECTION_BYTES

__all__ = ["Budget", "Holder"]


class Holder(Protocol):
    """Something that holds bytes."""

    def evict(self) -> None:
        """Release them soon; they no longer count."""


class Budget:
    """Counts bytes by holder. `used` is their sum plus the overhead of open connections."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        # In the order in which they began to hold something.
        self._sizes: dict[Holder, int] = {}

    def enter(self) -> None:
        """Note that a connection has been opened."""
        self._add(OPEN_CONNECTION_BYTES)

    def leave(self) -> None:
        """Note that a connection has been closed."""
        self.used -= OPEN_CONNECTION_BYTES

    def hold(self, holder: Holder, size: int) -> None:
        """Set how many bytes a holder holds, and evict holders if the sum exceeds the limit.

        The caller itself may be evicted.
        """
        before = self._sizes.pop(holder, 0) if not size else self._sizes.get(holder, 0)
        if size:
            self._sizes[holder] = size
        self._add(size - before)

    def _add(self, size: int) -> None:
        self.used += size
        if size > 0 and self.used > self.limit:
            self._make_room()

    def _make_room(self) -> None:
        """Evict the oldest holders; small ones only if there are no others."""
        for least in (EVICTED_BYTES_MIN, 1):
            for holder in [one for one, size in self._sizes.items() if size >= least]:
                if self.used <= self.limit:
                    return
                self.used -= self._sizes.pop(holder)
                holder.evict()
