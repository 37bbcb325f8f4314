"""Garbage of a node: looked for seldom, and whenever many connections have left.

Left alone, Python looks through all objects that live whenever a quarter of them is new. With some
thousand connections that takes more than a tenth of a second, again and again, and a node does
nothing else meanwhile. What connections and requests use is let go without it; cycles are few.

Order: one for each process, whose settings it owns while it runs.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable

import trio

from kraftwire.node.limits import (
    COLLECT_CONNECTIONS_MIN,
    COLLECT_LOOK_SECONDS,
    COLLECT_REST,
    COLLECT_SECONDS,
    GIVE_BACK_BYTES_MIN,
)

__all__ = ["Collector", "give_back"]

# Of the three generations, the oldest is left to `Collector`.
_OLDEST_NEVER = 1_000_000


def give_back() -> None:
    """Have the C library return what is free to the system, where it can be told to.

    It keeps what many small answers leave between others, which may be all that a node may hold.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)


class Collector:
    """Collects garbage and gives memory back to the system.

    `connections` tells how many are open, `held_bytes` what they hold together.
    """

    def __init__(
        self,
        connections: Callable[[], int],
        held_bytes: Callable[[], int],
        *,
        collect: Callable[[], object] = gc.collect,
        give_back: Callable[[], object] = give_back,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """The rest is what Python, the C library and the system do, for tests to replace."""
        self._connections = _Ebb(connections, COLLECT_CONNECTIONS_MIN)
        self._held = _Ebb(held_bytes, GIVE_BACK_BYTES_MIN)
        self._collect = collect
        self._give_back = give_back
        self._clock = clock

    async def run(self) -> None:
        """Collect now and then until cancelled."""
        before = gc.get_threshold()
        self._collect()
        # Modules and classes stay: nobody need look at them again.
        gc.freeze()
        gc.set_threshold(before[0], before[1], _OLDEST_NEVER)
        try:
            due = trio.current_time() + COLLECT_SECONDS
            while True:
                await trio.sleep(COLLECT_LOOK_SECONDS)
                have_left = self._connections.is_there()
                has_given_up = self._held.is_there()
                if have_left or trio.current_time() >= due:
                    began = self._clock()
                    self._collect()
                    took = self._clock() - began
                    due = trio.current_time() + max(COLLECT_SECONDS, took * COLLECT_REST)
                if have_left or has_given_up:
                    self._give_back()
        finally:
            gc.set_threshold(*before)
            gc.unfreeze()


class _Ebb:
    """Whether there is much less of something than there was at the most since the last time."""

    def __init__(self, measure: Callable[[], int], least: int) -> None:
        """Below `least` nothing is much."""
        self._measure = measure
        self._least = least
        self._most = 0

    def is_there(self) -> bool:
        """Look; an eighth of the most, or less than matters, is much less."""
        now = self._measure()
        self._most = max(self._most, now)
        if self._most < self._least or now > max(self._most // 8, self._least // 2):
            return False
        self._most = now
        return True
