"""Long requests in their turn: together they get a share of the node's one thread, not all of it.

What a request costs grows with its length. The short ones of replicas never wait here.
"""

from __future__ import annotations

import trio

from kraftwire.limits import (
    LONG_REQUEST_BYTES_MIN,
    LONG_REQUESTS_BYTES_BURST,
    LONG_REQUESTS_BYTES_PER_SECOND,
)

__all__ = ["Pacer"]


class Pacer:
    """Lets long requests through at a rate of bytes, in the order in which they came."""

    def __init__(self) -> None:
        self._lane = trio.Lock()
        self._free_at = -float("inf")

    async def admit(self, size: int) -> None:
        """Return when a request of this size may be decoded and answered. Units: bytes."""
        if size < LONG_REQUEST_BYTES_MIN:
            return
        async with self._lane:
            now = trio.current_time()
            if self._free_at > now:
                await trio.sleep_until(self._free_at)
            burst = LONG_REQUESTS_BYTES_BURST / LONG_REQUESTS_BYTES_PER_SECOND
            earliest = trio.current_time() - burst
            self._free_at = max(self._free_at, earliest) + size / LONG_REQUESTS_BYTES_PER_SECOND
