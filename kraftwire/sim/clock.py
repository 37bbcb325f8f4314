"""Virtual time: one queue of events for the cluster, and a separate clock for every node.

Units: the queue counts microseconds from the cluster's start; nodes see wall-clock milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

MS = 1_000
SECOND = 1_000_000

# The wall-clock time of nodes at the cluster's start.
_WALL_MS = 1_700_000_000_000

_MILLION = 1_000_000
_UNITS = _MILLION * MS


class EventQueue:
    """Events in order of time; simultaneous ones in the order in which they were scheduled."""

    __slots__ = ("_queue", "_sequence", "now")

    def __init__(self) -> None:
        self.now = 0
        self._sequence = 0
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._queue)

    def at(self, when: int, action: Callable[..., None], *arguments: Any) -> None:
        """Schedule a call; if the time has passed, it comes after everything that is due now."""
        if when < self.now:
            when = self.now
        self._sequence += 1
        heappush(self._queue, (when, self._sequence, action, arguments))

    def after(self, delay: int, action: Callable[..., None], *arguments: Any) -> None:
        """Schedule a call after a delay."""
        self._sequence += 1
        heappush(self._queue, (self.now + delay, self._sequence, action, arguments))

    def run_until(self, end: int) -> None:
        """Let time pass up to a moment, inclusive."""
        queue = self._queue
        while queue and queue[0][0] <= end:
            self.now, _, action, arguments = heappop(queue)
            action(*arguments)
        self.now = end


class Clock:
    """A node's wall clock. Units: `rate` in millionths, 1,000,000 for a correct clock.

    Within a process run it never goes back; `restart` may set it back, as an operator may.
    """

    __slots__ = ("_base_ms", "_start", "rate")

    def __init__(self, rate: int = _MILLION, skew_ms: int = 0) -> None:
        self.rate = rate
        self._start = 0
        self._base_ms = _WALL_MS + skew_ms

    def restart(self, now: int, skew_ms: int) -> None:
        """Restart the clock with an error of `skew_ms`."""
        self._base_ms = _WALL_MS + now // MS + skew_ms
        self._start = now

    def read(self, now: int) -> int:
        """The wall-clock milliseconds that a node sees."""
        return self._base_ms + (now - self._start) * self.rate // _UNITS

    def when(self, wall_ms: int) -> int:
        """The first moment at which the clock shows this."""
        return self._start - (-(wall_ms - self._base_ms) * _UNITS // self.rate)
