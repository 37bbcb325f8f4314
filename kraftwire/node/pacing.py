"""Long requests in their turn: together they get a share of the node's one thread, not all of it.

What a request costs grows with its length. Short ones, those of replicas among them, never wait for
long ones: `turns` lets them through.
"""

from __future__ import annotations

import trio

from kraftwire.node.limits import (
    LONG_REQUEST_BYTES_MIN,
    LONG_REQUESTS_BYTES_BURST,
    LONG_REQUESTS_BYTES_PER_SECOND,
    LONG_REQUESTS_REST,
)
from kraftwire.node.turns import Turns

__all__ = ["Pacer"]


class Pacer:
    """Lets long requests through at a rate of bytes, in the order in which they came.

    All connections of a node share it; each has a number, by when it came.
    """

    def __init__(self) -> None:
        self._connections = 0
        self._turns = Turns()
        self._lane = trio.Lock()
        self._free_at = self._let_at = -float("inf")

    def join(self) -> int:
        """The number of a new connection."""
        self._connections += 1
        return self._connections

    async def admit(self, number: int, size: int) -> None:
        """Return when a request of this size on this connection may be decoded and answered.

        Units: bytes.
        """
        if size < LONG_REQUEST_BYTES_MIN:
            await self._turns.take(number, size)
            return
        is_waited_for = self._lane.locked()
        async with self._lane:
            now = trio.current_time()
            # What the one before took, if this one came while it was let through.
            work = now - self._let_at if is_waited_for else 0.0
            earliest = max(self._free_at, now + work * LONG_REQUESTS_REST)
            if earliest > now:
                await trio.sleep_until(earliest)
            self._let_at = trio.current_time()
            burst = LONG_REQUESTS_BYTES_BURST / LONG_REQUESTS_BYTES_PER_SECOND
            self._free_at = max(self._free_at, self._let_at - burst)
            self._free_at += size / LONG_REQUESTS_BYTES_PER_SECOND
