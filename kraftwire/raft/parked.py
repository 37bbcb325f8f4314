"""Fetch requests that wait at a leader until there is something to answer.

Order: whatever wakes several answers them in the order in which they came.

Source: Kafka's `ThresholdPurgatory`; R-FET-13, R-FET-14.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from kraftwire.limits import PARKED_FETCHES_MAX, PARKED_WOKEN_MAX
from kraftwire.raft.events import RequestReceived

__all__ = ["ParkedFetch", "ParkedFetches"]


@dataclass(slots=True)
class ParkedFetch:
    """A request at rest."""

    token: int
    offset: int
    deadline_ms: int
    event: RequestReceived


class ParkedFetches:
    """The requests at rest. `next_deadline_ms` is when the first gives up, None for none."""

    __slots__ = ("_parked", "next_deadline_ms")

    def __init__(self) -> None:
        self._parked: dict[int, ParkedFetch] = {}
        self.next_deadline_ms: int | None = None

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, fetch: ParkedFetch) -> bool:
        """Keep a request; returns False if there are too many already: then answer it at once."""
        if len(self._parked) >= PARKED_FETCHES_MAX:
            return False
        self._parked[fetch.token] = fetch
        due = self.next_deadline_ms
        if due is None or fetch.deadline_ms < due:
            self.next_deadline_ms = fetch.deadline_ms
        return True

    def wake_at_or_below(self, end_offset: int) -> list[ParkedFetch]:
        """Take out those that wait for what a log with this end offset has."""
        return self._take([one for one in self._parked.values() if one.offset <= end_offset])

    def wake_all(self) -> list[ParkedFetch]:
        """Take out all."""
        return self._take(list(self._parked.values()))

    def expired(self, now_ms: int) -> list[ParkedFetch]:
        """Take out those that have waited long enough; PARKED_WOKEN_MAX of them at a time."""
        due = self.next_deadline_ms
        if due is None or now_ms < due:
            return []
        waited = (one for one in self._parked.values() if one.deadline_ms <= now_ms)
        return self._take(list(islice(waited, PARKED_WOKEN_MAX)))

    def drop(self, token: int) -> None:
        """Forget a request for whose answer nobody waits any more."""
        if self._parked.pop(token, None) is not None and not self._parked:
            self.next_deadline_ms = None

    def _take(self, woken: list[ParkedFetch]) -> list[ParkedFetch]:
        """Take these out."""
        for one in woken:
            del self._parked[one.token]
        if woken:
            left = (one.deadline_ms for one in self._parked.values())
            self.next_deadline_ms = min(left, default=None)
        return woken
