"""Keeps the requests in flight until their responses come, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from kraftwire.capture.framing.frames import Request
from kraftwire.limits import RENDER_PENDING_COUNT_MAX

T = TypeVar("T")

# How many connections without a request in flight are remembered: most will have one again.
_IDLE_CONNECTIONS_MAX = 1000


class PendingRequests(Generic[T]):
    """A table of the requests in flight: a value for each, until its response comes.

    Servers answer the requests of a connection in their order, so a response also tells
    that earlier requests on its connection stay without one. The total weight is limited; the
    requests that wait longest are dropped.
    """

    def __init__(self, weight_max: int = RENDER_PENDING_COUNT_MAX) -> None:
        # Request -> its number, its value and weight.
        self._by_connection: dict[str, dict[Request, tuple[int, T, int]]] = {}
        self._number = 0
        self._weight = 0
        self._weight_max = weight_max
        self._skipped: list[T] = []

    def add(self, connection: str, request: Request, value: T, weight: int = 1) -> None:
        """Enter a request; `skipped` then returns the values that have to be dropped."""
        waiting = self._by_connection.get(connection)
        if waiting is None:
            waiting = self._by_connection[connection] = {}
        waiting[request] = self._number, value, weight
        self._number += 1
        self._weight += weight
        while self._weight > self._weight_max:
            self._skipped.append(self._oldest())

    def get(self, connection: str, request: Request) -> T | None:
        """Return the value of a request, which stays in the table; None if it is not there."""
        entry = self._by_connection.get(connection, {}).get(request)
        return None if entry is None else entry[1]

    def take(self, connection: str, request: Request) -> T | None:
        """Remove a request, and return its value; `skipped` then returns those before it."""
        waiting = self._by_connection.get(connection)
        if not waiting or request not in waiting:
            return None
        number, value, weight = waiting.pop(request)
        self._weight -= weight
        if waiting:
            # Insertion order is the order of the frames.
            while waiting and waiting[first := next(iter(waiting))][0] < number:
                _, each, weight = waiting.pop(first)
                self._skipped.append(each)
                self._weight -= weight
        elif len(self._by_connection) > _IDLE_CONNECTIONS_MAX:
            del self._by_connection[connection]
        return value

    def skipped(self) -> Iterable[T]:
        """Return the requests that the last response has shown to stay without one, and those
        dropped to make room; each is returned once.
        """
        return self._once()

    @property
    def has_skipped(self) -> bool:
        """Whether `skipped` would return any."""
        return bool(self._skipped)

    def _once(self) -> Iterator[T]:
        # A reported request is no longer held: the receiver may decode it.
        found, self._skipped = self._skipped[::-1], []
        while found:
            value = found.pop()
            yield value
            del value

    def drain(self) -> Iterator[T]:
        """Remove all requests, and yield their values in order of the requests."""
        everything = [value for each in self._by_connection.values() for value in each.values()]
        self._by_connection.clear()
        self._weight = 0
        everything.sort(key=itemgetter(0), reverse=True)
        while everything:
            _, value, _ = everything.pop()
            yield value
            del value

    def replace(self, change: Callable[[T], T]) -> None:
        """Replace the value of each request by one of the same weight."""
        for waiting in self._by_connection.values():
            for request, (number, value, weight) in waiting.items():
                waiting[request] = number, change(value), weight

    def _oldest(self) -> T:
        """Drop the first request of the connection that came first, and return it."""
        connection = next(name for name, waiting in self._by_connection.items() if waiting)
        waiting = self._by_connection[connection]
        _, value, weight = waiting.pop(next(iter(waiting)))
        self._weight -= weight
        if not waiting:
            del self._by_connection[connection]
        return value
