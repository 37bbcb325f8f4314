"""Keeps the requests in flight until their responses come, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from kraftwire.capture.framing.frames import Request
from kraftwire.limits import RENDER_PENDING_COUNT_MAX

T = TypeVar("T")


class PendingRequests(Generic[T]):
    """A table of the requests in flight: a value for each, until its response comes.

    The total weight is limited; the requests that wait longest are dropped. `dropped` holds their
    values, and those of requests that a response has passed over, until they are taken.
    """

    def __init__(self, weight_max: int = RENDER_PENDING_COUNT_MAX) -> None:
        # Request -> its value and weight, in the order of the requests.
        self._waiting: dict[Request, tuple[T, int]] = {}
        self._weight = 0
        self._weight_max = weight_max
        self.dropped: list[T] = []

    def add(self, request: Request, value: T, weight: int = 1) -> None:
        """Enter a request; values may have to be `dropped` for it."""
        self._waiting[request] = value, weight
        self._weight += weight
        while self._weight > self._weight_max:
            self._drop(next(iter(self._waiting)))

    def get(self, request: Request) -> T | None:
        """Return the value of a request, which stays in the table; None if it is not there."""
        entry = self._waiting.get(request)
        return None if entry is None else entry[0]

    def take(self, request: Request) -> T | None:
        """Remove a request, and return its value; those that it has `skipped` are `dropped`."""
        for each in request.skipped:
            if each in self._waiting:
                self._drop(each)
        entry = self._waiting.pop(request, None)
        if entry is None:
            return None
        value, weight = entry
        self._weight -= weight
        return value

    def take_dropped(self) -> Iterator[T]:
        """Yield the values that are `dropped`, each once."""
        # A reported request is no longer held: the receiver may decode it.
        found, self.dropped = self.dropped[::-1], []
        while found:
            value = found.pop()
            yield value
            del value

    def drain(self) -> Iterator[T]:
        """Remove all requests, and yield their values in order of the requests."""
        everything = list(self._waiting.values())[::-1]
        self._waiting.clear()
        self._weight = 0
        while everything:
            value, _ = everything.pop()
            yield value
            del value

    def replace(self, change: Callable[[T], T]) -> None:
        """Replace the value of each request by one of the same weight."""
        for request, (value, weight) in self._waiting.items():
            self._waiting[request] = change(value), weight

    def _drop(self, request: Request) -> None:
        value, weight = self._waiting.pop(request)
        self._weight -= weight
        self.dropped.append(value)
