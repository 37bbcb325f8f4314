"""What the connections of a node may hold in memory together.

A connection tells how many bytes it holds: of requests that are not whole or not answered, and of
answers that its peer has not taken. What Python needs for the connection itself counts too. Above
the limit the connections that have held something for longest are given up, not those that come:
peers that mean well take what they asked for at once.
"""

from __future__ import annotations

from typing import Protocol

from kraftwire.limits import EVICTED_BYTES_MIN, OPEN_CONNECTION_BYTES

__all__ = ["Budget", "Holder"]


class Holder(Protocol):
    """Something that holds bytes."""

    def evict(self) -> None:
        """Let go of them soon; until then they count no more."""


class Budget:
    """Counts bytes by holder. `used` is their sum, and what open connections cost."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        # In the order in which they began to hold something.
        self._sizes: dict[Holder, int] = {}

    def enter(self) -> None:
        """Note that a connection has been opened."""
        self._add(OPEN_CONNECTION_BYTES)

    def leave(self) -> None:
        """Note that one is closed."""
        self.used -= OPEN_CONNECTION_BYTES

    def hold(self, holder: Holder, size: int) -> None:
        """Note that a holder holds so many bytes from now on, and make room if they are too many.

        One that is evicted here may be the caller.
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
        """Evict the oldest holders; those of a few bytes only if there are no others."""
        for least in (EVICTED_BYTES_MIN, 1):
            for holder in [one for one, size in self._sizes.items() if size >= least]:
                if self.used <= self.limit:
                    return
                self.used -= self._sizes.pop(holder)
                holder.evict()
