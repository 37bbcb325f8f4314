"""The rate gate: short work of many connections, a few pieces in each round of the event loop.

A flood delays only the connections that take part in it, with one piece of work of each at a time.
The connections that have been open for longest come first, then those that have waited for longest.
Without a flood nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import trio

# Short work is let through in turns of this many bytes, with a fixed cost added to each piece: four
# small requests, or one of the longest. That takes about one millisecond, during which other tasks
# wait. When this time has passed since the last turn, a turn's worth passes without waiting.
TURN_BYTES = 4 * 1024
TURN_SECONDS = 0.001
REQUEST_COST_BYTES = 1024
TURN_REQUESTS = TURN_BYTES // REQUEST_COST_BYTES

T = TypeVar("T")


def next_in_turn(waiting: Mapping[T, object], count: int) -> list[T]:
    """Return the waiters that come next.

    `waiting` is by connection number, or by tuples that begin with one, in order of arrival. Half
    of the places go to the connections that have been open for longest, the others to those that
    have waited for longest.
    """
    keys: Iterable[Any] = waiting
    oldest = nsmallest(count // 2, keys)
    others = (key for key in waiting if key not in oldest)
    return [*oldest, *islice(others, count - len(oldest))]


class _Waiter(NamedTuple):
    """Short work that waits. Units: bytes."""

    cost: int
    turn: Callable[[], object]


class RateGate:
    """Admits short work of one kind; each connection has one piece of it at a time."""

    def __init__(self) -> None:
        self._left = 0
        self._ends_at = -float("inf")
        # By connection number, in order of arrival.
        self._waiting: dict[int, _Waiter] = {}
        self._is_running = False

    async def wait_turn(self, number: int, size: int) -> None:
        """Return when work of this size on this connection may be done. Units: bytes."""
        if self._passes(size):
            return
        turn = trio.Event()
        self._wait(number, size, turn.set)
        try:
            await turn.wait()
        finally:
            self.cancel(number)

    def call_in_turn(self, number: int, turn: Callable[[], object]) -> None:
        """Call `turn` when the smallest work on this connection may be done: perhaps at once."""
        if self._passes(0):
            turn()
        else:
            self._wait(number, 0, turn)

    def cancel(self, number: int) -> None:
        """Remove a connection from the queue; no effect after its turn."""
        self._waiting.pop(number, None)

    def _passes(self, size: int) -> bool:
        """Return whether work need not wait, and count it then."""
        if self._is_running:
            return False
        now = trio.current_time()
        if now >= self._ends_at:
            self._left, self._ends_at = TURN_BYTES, now + TURN_SECONDS
        if self._left <= 0:
            return False
        self._left -= size + REQUEST_COST_BYTES
        return True

    def _wait(self, number: int, size: int, turn: Callable[[], object]) -> None:
        self._waiting[number] = _Waiter(size + REQUEST_COST_BYTES, turn)
        if not self._is_running:
            self._is_running = True
            trio.lowlevel.spawn_system_task(self._run)

    async def _run(self) -> None:
        """Resume a few waiters in each round of the loop, until none is left."""
        try:
            while self._waiting:
                left = TURN_BYTES
                for place, number in enumerate(next_in_turn(self._waiting, TURN_REQUESTS)):
                    if left > 0 or place < TURN_REQUESTS // 2:
                        left -= self._resume(number)
                began = trio.current_time()
                await trio.lowlevel.checkpoint()
                # On a slow machine too, a flood gets at most half of the time.
                await trio.sleep(trio.current_time() - began)
        finally:
            self._is_running = False

    def _resume(self, number: int) -> int:
        waiter = self._waiting.pop(number)
        waiter.turn()
        return waiter.cost
