"""Garbage collection of a node: rarely, and whenever many connections have closed.

By default Python scans all live objects whenever a quarter of them are new. With a few thousand
connections that takes more than a tenth of a second each time, during which the node does nothing
else. Connections and requests are freed without it; cycles are few.

Order: one per process, whose collector settings it owns while it runs.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable

import trio

# Garbage is collected at this interval, with a pause of at least this many times the duration of a
# collection: at most one commit in five hundred is delayed by it. If nearly all of at least this
# many connections have closed, the next check collects. After that, or if connections have released
# nearly all of at least this many bytes, free memory is returned to the system.
COLLECT_SECONDS = 60
COLLECT_REST = 1000
COLLECT_LOOK_SECONDS = 2
COLLECT_CONNECTIONS_MIN = 256
RELEASED_BYTES_MIN = 16 * 1024 * 1024

# Of the three generations, the oldest is left to `Collector`.
_OLDEST_NEVER = 1_000_000


def release_memory() -> None:
    """Make the C library return free memory to the system, where it can.

    Otherwise fragments left by many small answers may take up all the memory that a node may use.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)


class Collector:
    """Collects garbage and returns memory to the system.

    `connections` returns how many are open, `held_bytes` how much they hold together.
    """

    def __init__(
        self,
        connections: Callable[[], int],
        held_bytes: Callable[[], int],
        *,
        collect: Callable[[], object] = gc.collect,
        release_memory: Callable[[], object] = release_memory,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """The remaining parameters let tests replace Python, the C library and the clock."""
        self._connections = _DropDetector(connections, COLLECT_CONNECTIONS_MIN)
        self._held = _DropDetector(held_bytes, RELEASED_BYTES_MIN)
        self._collect = collect
        self._release = release_memory
        self._clock = clock

    async def run(self) -> None:
        """Collect at intervals until cancelled."""
        before = gc.get_threshold()
        self._collect()
        # Modules and classes live for ever: do not scan them again.
        gc.freeze()
        gc.set_threshold(before[0], before[1], _OLDEST_NEVER)
        try:
            due = trio.current_time() + COLLECT_SECONDS
            while True:
                await trio.sleep(COLLECT_LOOK_SECONDS)
                closed_many = self._connections.has_dropped()
                has_released = self._held.has_dropped()
                if closed_many or trio.current_time() >= due:
                    began = self._clock()
                    self._collect()
                    took = self._clock() - began
                    due = trio.current_time() + max(COLLECT_SECONDS, took * COLLECT_REST)
                if closed_many or has_released:
                    self._release()
        finally:
            gc.set_threshold(*before)
            gc.unfreeze()


class _DropDetector:
    """Detects that a quantity has fallen far below its peak since the last detection."""

    def __init__(self, measure: Callable[[], int], least: int) -> None:
        """A peak below `least` does not count."""
        self._measure = measure
        self._least = least
        self._most = 0

    def has_dropped(self) -> bool:
        """Return whether it has fallen to an eighth of its peak, or below `least`."""
        now = self._measure()
        self._most = max(self._most, now)
        if self._most < self._least or now > max(self._most // 8, self._least // 2):
            return False
        self._most = now
        return True
