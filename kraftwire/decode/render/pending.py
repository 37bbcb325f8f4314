"""Requests that wait for their responses, with whatever a renderer keeps of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from kraftwire.limits import RENDER_PENDING_COUNT_MAX

__all__ = ["Pending"]

T = TypeVar("T")


class Pending(Generic[T]):
    """What is kept of each request until its response comes.

    Shape: servers answer the requests of a connection in their order, so a response also tells
    that what was asked before it on its connection stays without one. Only a limited number is
    kept; whatever waits longest gives way.
    """

    def __init__(self) -> None:
        self._by_connection: dict[str, dict[int, T]] = {}
        self._count = 0

    def add(self, connection: str, index: int, kept: T) -> T | None:
        """Keep something of a request; returns what had to give way, if anything."""
        waiting = self._by_connection.get(connection)
        if waiting is None:
            waiting = self._by_connection[connection] = {}
        waiting[index] = kept
        self._count += 1
        if self._count > RENDER_PENDING_COUNT_MAX:
            return self._oldest()
        return None

    def take(self, connection: str, index: int) -> tuple[T | None, list[T]]:
        """What was kept of the request with an index, and of those before it without response."""
        waiting = self._by_connection.get(connection)
        if not waiting:
            return None, []
        kept = waiting.pop(index, None)
        if kept is None:
            return None, []
        self._count -= 1
        skipped: list[T] = []
        # Insertion order is the order of the frames.
        while waiting and (first := next(iter(waiting))) < index:
            skipped.append(waiting.pop(first))
            self._count -= 1
        if not waiting:
            del self._by_connection[connection]
        return kept, skipped

    def rest(self) -> Iterator[T]:
        """Everything that still waits, in order of the requests."""
        everything = [pair for each in self._by_connection.values() for pair in each.items()]
        self._by_connection.clear()
        self._count = 0
        for _, kept in sorted(everything, key=lambda pair: pair[0]):
            yield kept

    def _oldest(self) -> T:
        """Give up the first request of the connection that came first."""
        connection = next(iter(self._by_connection))
        waiting = self._by_connection[connection]
        kept = waiting.pop(next(iter(waiting)))
        self._count -= 1
        if not waiting:
            del self._by_connection[connection]
        return kept
