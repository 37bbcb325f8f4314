"""Garbage collection of a node: rarely, and whenever many connections have closed.

By default Python scans new objects after every few hundred, and all live ones whenever a quarter of
them are new. With a few thousand connections the latter takes more than a tenth of a second, and
the former half of that when many requests are replaced at once; the node does nothing else then.
Connections and requests are freed without it; cycles are few.

Order: one per process, whose collector settings it owns while it runs.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable

import trio

# Garbage is collected at this interval, with a pause of at least this many times the duration of a
# collection: at most one commit in five hundred is delayed by it. With this many connections or
# more it would take half a second, so it waits until nearly all of them have closed; the next check
# collects then. After that, or if connections have released nearly all of at least this many bytes,
# free memory is returned to the system.
COLLECT_SECONDS = 60
COLLECT_REST = 1000
COLLECT_LOOK_SECONDS = 2
COLLECT_CONNECTIONS_MIN = 256
RELEASED_BYTES_MIN = 16 * 1024 * 1024

# Garbage is collected as well after so many objects more were made than freed: if they were
# garbage, they would take 200 to 300 MiB. 6,000 connections have a fifth of that.
COLLECT_OBJECTS = 2_000_000


def new_objects() -> int:
    """Return how many more objects were made than freed since the last collection."""
    return gc.get_count()[0]


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
        new_objects: Callable[[], int] = new_objects,
        collect: Callable[[], object] = gc.collect,
        release_memory: Callable[[], object] = release_memory,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """The remaining parameters let tests replace Python, the C library and the clock."""
        self._open = connections
        self._connections = _DropDetector(connections, COLLECT_CONNECTIONS_MIN)
        self._held = _DropDetector(held_bytes, RELEASED_BYTES_MIN)
        self._new_objects = new_objects
        self._collect = collect
        self._release = release_memory
        self._clock = clock

    async def run(self) -> None:
        """Collect at intervals until cancelled."""
        self._collect()
        # Modules and classes live for ever: do not scan them again.
        gc.freeze()
        gc.disable()
        try:
            due = trio.current_time() + COLLECT_SECONDS
            while True:
                await trio.sleep(COLLECT_LOOK_SECONDS)
                closed_many = self._connections.has_dropped()
                has_released = self._held.has_dropped()
                has_made_many = self._new_objects() >= COLLECT_OBJECTS
                is_due = trio.current_time() >= due and self._open() < COLLECT_CONNECTIONS_MIN
                if closed_many or has_made_many or is_due:
                    began = self._clock()
                    self._collect()
                    took = self._clock() - began
                    due = trio.current_time() + max(COLLECT_SECONDS, took * COLLECT_REST)
                if closed_many or has_released:
                    self._release()
        finally:
            gc.enable()
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
