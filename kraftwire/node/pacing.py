"""Long requests in their turn: together they get a share of the node's one thread, not all of it.

What a request costs grows with its length. Short ones, those of replicas among them, never wait for
long ones: `turns` lets them through.
"""

from __future__ import annotations

import trio

from kraftwire.limits import (
    LONG_REQUEST_BYTES_MIN,
    LONG_REQUESTS_BYTES_BURST,
    LONG_REQUESTS_BYTES_PER_SECOND,
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
        self._free_at = -float("inf")

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
        async with self._lane:
            now = trio.current_time()
            if self._free_at > now:
                await trio.sleep_until(self._free_at)
            burst = LONG_REQUESTS_BYTES_BURST / LONG_REQUESTS_BYTES_PER_SECOND
            earliest = trio.current_time() - burst
            self._free_at = max(self._free_at, earliest) + size / LONG_REQUESTS_BYTES_PER_SECOND
