"""Turns for short requests: in each round of the loop a node answers only a few of them.

A flood delays only the connections that take part in it, with one request of each at a time. The
connections that have been open for longest, which include those of replicas, come first, then those
that have waited for longest. Without a flood no request waits.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import NamedTuple

import trio

from kraftwire.node.limits import (
    REQUEST_COST_BYTES,
    TURN_BYTES,
    TURN_OLDEST_CONNECTIONS,
    TURN_SECONDS,
)

__all__ = ["Turns"]


class _Waiter(NamedTuple):
    """A request that waits. Units: bytes."""

    cost: int
    turn: trio.Event


class Turns:
    """Lets short requests through. Order: all calls in trio's thread."""

    def __init__(self) -> None:
        self._left = 0
        self._ends_at = -float("inf")
        # By connection number, in order of arrival.
        self._waiting: dict[int, _Waiter] = {}
        self._is_dealing = False

    async def take(self, number: int, size: int) -> None:
        """Return when a request of this size on this connection may be answered. Units: bytes."""
        cost = size + REQUEST_COST_BYTES
        if not self._is_dealing:
            now = trio.current_time()
            if now >= self._ends_at:
                self._left, self._ends_at = TURN_BYTES, now + TURN_SECONDS
            if self._left > 0:
                self._left -= cost
                return
            self._is_dealing = True
            trio.lowlevel.spawn_system_task(self._deal)
        waiter = self._waiting[number] = _Waiter(cost, trio.Event())
        try:
            await waiter.turn.wait()
        finally:
            if self._waiting.get(number) is waiter:
                del self._waiting[number]

    async def _deal(self) -> None:
        """Let a few through in each round of the loop, until none is waiting."""
        try:
            while self._waiting:
                left = TURN_BYTES
                for number in nsmallest(TURN_OLDEST_CONNECTIONS, self._waiting):
                    left -= self._let_through(number)
                while self._waiting and left > 0:
                    left -= self._let_through(next(iter(self._waiting)))
                began = trio.current_time()
                await trio.lowlevel.checkpoint()
                # On a slow machine too, a flood gets at most half of the time.
                await trio.sleep(trio.current_time() - began)
        finally:
            self._is_dealing = False

    def _let_through(self, number: int) -> int:
        waiter = self._waiting.pop(number)
        waiter.turn.set()
        return waiter.cost
