"""Requests that wait for their responses, with whatever a renderer keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from kraftwire.decode.framing.frames import Request
from kraftwire.limits import RENDER_PENDING_COUNT_MAX

__all__ = ["Pending"]

T = TypeVar("T")

# Connections without a request in flight that are remembered, because most will have one again.
_IDLE_CONNECTIONS_MAX = 1000


class Pending(Generic[T]):
    """What is kept of each request until its response comes.

    Shape: servers answer the requests of a connection in their order, so a response also tells
    that what was asked before it on its connection stays without one. Only as much is kept as
    weighs less than a limit; whatever waits longest gives way.
    """

    # The number of the request that `skipped` or `rest` gave last, in the order of requests.
    turn = 0

    def __init__(self, weight_max: int = RENDER_PENDING_COUNT_MAX) -> None:
        # Request -> its number, what is kept of it, and the weight of that.
        self._by_connection: dict[str, dict[Request, tuple[int, T, int]]] = {}
        self._count = 0
        self._weight = 0
        self._weight_max = weight_max
        self._skipped: list[tuple[int, T]] = []

    def add(self, connection: str, request: Request, kept: T, weight: int = 1) -> None:
        """Keep something of a request; then `skipped` has what has to give way."""
        waiting = self._by_connection.get(connection)
        if waiting is None:
            waiting = self._by_connection[connection] = {}
        waiting[request] = self._count, kept, weight
        self._count += 1
        self._weight += weight
        while self._weight > self._weight_max:
            self._skipped.append(self._oldest())

    def take(self, connection: str, request: Request) -> T | None:
        """What was kept of a request; then `skipped` has those before it."""
        waiting = self._by_connection.get(connection)
        if not waiting or request not in waiting:
            return None
        number, kept, weight = waiting.pop(request)
        self._weight -= weight
        if waiting:
            # Insertion order is the order of the frames.
            while waiting and waiting[first := next(iter(waiting))][0] < number:
                skipped, each, weight = waiting.pop(first)
                self._skipped.append((skipped, each))
                self._weight -= weight
        elif len(self._by_connection) > _IDLE_CONNECTIONS_MAX:
            del self._by_connection[connection]
        return kept

    def skipped(self) -> Iterable[T]:
        """The requests that the last response has shown to stay without one, or that had to give
        way; told once.
        """
        return self._told() if self._skipped else ()

    def _told(self) -> Iterator[T]:
        found, self._skipped = self._skipped, []
        for self.turn, kept in found:
            yield kept

    def rest(self) -> Iterator[T]:
        """Everything that still waits, in order of the requests."""
        everything = [kept for each in self._by_connection.values() for kept in each.values()]
        self._by_connection.clear()
        self._weight = 0
        for self.turn, kept, _ in sorted(everything, key=itemgetter(0)):
            yield kept

    def _oldest(self) -> tuple[int, T]:
        """Give up the first request of the connection that came first."""
        connection = next(name for name, waiting in self._by_connection.items() if waiting)
        waiting = self._by_connection[connection]
        number, kept, weight = waiting.pop(next(iter(waiting)))
        self._weight -= weight
        if not waiting:
            del self._by_connection[connection]
        return number, kept
