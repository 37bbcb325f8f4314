"""Parked Fetch requests: a leader holds them until it has something to send.

Order: requests that are woken together are answered in order of arrival.

Source: Kafka's `ThresholdPurgatory`; R-FET-13, R-FET-14.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from kraftwire.raft.events import RequestReceived

# Fetches that a leader parks until there is something to answer. Every voter and observer has one;
# a peer that keeps opening connections must not make the leader park more.
PARKED_FETCHES_MAX = 4096

# Of parked Fetches from replicas that are not voters, this many are answered in one step: some
# milliseconds of work.
PARKED_WOKEN_MAX = 32

# Before any time: clocks begin at 0.
DUE_NOW_MS = 0


@dataclass(slots=True)
class ParkedFetch:
    """A parked request."""

    token: int
    offset: int
    deadline_ms: int
    event: RequestReceived


class ParkedFetches:
    """The parked requests. Those that are already due are answered before all others.

    `next_deadline_ms` is when the first is due, None if there is none.
    """

    __slots__ = ("_due", "_parked", "next_deadline_ms")

    def __init__(self) -> None:
        self._parked: dict[int, ParkedFetch] = {}
        self._due: dict[int, ParkedFetch] = {}
        self.next_deadline_ms: int | None = None

    def __len__(self) -> int:
        return len(self._parked) + len(self._due)

    def park(self, fetch: ParkedFetch) -> bool:
        """Park a request; returns False if there are too many: then answer it at once."""
        if len(self) >= PARKED_FETCHES_MAX:
            return False
        self._parked[fetch.token] = fetch
        due = self.next_deadline_ms
        if due is None or fetch.deadline_ms < due:
            self.next_deadline_ms = fetch.deadline_ms
        return True

    def defer(self, woken: list[ParkedFetch]) -> None:
        """Park requests again that were taken out: they are due now, and nothing else wakes
        them."""
        self._due.update((one.token, one) for one in woken)
        if self._due:
            self.next_deadline_ms = DUE_NOW_MS

    def wake_at_or_below(self, end_offset: int) -> list[ParkedFetch]:
        """Remove and return the requests that wait for records below this end offset."""
        return self._take([one for one in self._parked.values() if one.offset <= end_offset])

    def wake_all(self) -> list[ParkedFetch]:
        """Remove and return all requests that are not already due."""
        return self._take(list(self._parked.values()))

    def take_all(self) -> list[ParkedFetch]:
        """Remove and return all requests, the due ones first."""
        due = list(self._due.values())
        self._due.clear()
        return due + self.wake_all()

    def expired(self, now_ms: int) -> list[ParkedFetch]:
        """Remove and return requests that are due or have waited long enough; PARKED_WOKEN_MAX at a
        time."""
        if self._due:
            due = list(islice(self._due.values(), PARKED_WOKEN_MAX))
            for one in due:
                del self._due[one.token]
            self._look()
            return due
        deadline = self.next_deadline_ms
        if deadline is None or now_ms < deadline:
            return []
        waited = (one for one in self._parked.values() if one.deadline_ms <= now_ms)
        return self._take(list(islice(waited, PARKED_WOKEN_MAX)))

    def drop(self, token: int) -> None:
        """Forget a request whose answer is no longer wanted."""
        is_due = self._due.pop(token, None) is not None
        is_last = self._parked.pop(token, None) is not None and not self._parked
        if is_due or is_last:
            self._look()

    def _take(self, woken: list[ParkedFetch]) -> list[ParkedFetch]:
        for one in woken:
            del self._parked[one.token]
        # Also if there is none: those whose deadline has come may have been dropped.
        self._look()
        return woken

    def _look(self) -> None:
        left = (one.deadline_ms for one in self._parked.values())
        self.next_deadline_ms = DUE_NOW_MS if self._due else min(left, default=None)
