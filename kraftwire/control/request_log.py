"""The last requests that a server has got, for programs that wait for one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import NamedTuple

import trio

from kraftwire.faults.rules import FaultRule
from kraftwire.faults.selectors import RequestHead

# So many requests are kept, and so many characters of a client id.
REQUESTS_MAX = 10_000
_CLIENT_ID_MAX = 255


class LoggedRequest(NamedTuple):
    """A request: the how manieth, when (Unix time in ms), and the id of the rule that decided."""

    number: int
    time_ms: int
    api_key: int
    version: int
    client_id: str | None
    node: int | None
    rule: int | None


class RequestLog:
    """Keeps the last requests. All calls are from trio's thread, or there is nobody who waits."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.last = 0
        self._clock = clock
        self._kept: deque[LoggedRequest] = deque(maxlen=REQUESTS_MAX)
        self._waiting = trio.lowlevel.ParkingLot()

    def add(self, head: RequestHead, rule: FaultRule | None) -> None:
        """Add a request about which rules have decided; the one that did, if any."""
        self.last += 1
        self._kept.append(
            LoggedRequest(
                self.last,
                int(self._clock() * 1000),
                head.api_key,
                head.version,
                head.client_id and head.client_id[:_CLIENT_ID_MAX],
                head.node,
                None if rule is None else rule.id,
            )
        )
        self._waiting.unpark_all()

    def after(self, number: int) -> Iterator[LoggedRequest]:
        """Return the requests after one, those that are kept, in their order."""
        newest_first = takewhile(lambda one: one.number > number, reversed(self._kept))
        return reversed(list(newest_first))

    def forgotten(self, number: int) -> int:
        """Return how many requests after one are not kept any more."""
        first = self._kept[0].number if self._kept else 1
        return max(first - 1 - number, 0)

    async def wait(self) -> None:
        """Wait for the next request."""
        await self._waiting.park()
