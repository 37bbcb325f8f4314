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

# Before every time there is: clocks begin at 0.
DUE_NOW_MS = 0


@dataclass(slots=True)
class ParkedFetch:
    """A request at rest."""

    token: int
    offset: int
    deadline_ms: int
    event: RequestReceived


class ParkedFetches:
    """The requests at rest. Those that are due already are answered before all others."""

    __slots__ = ("_due", "_next_deadline_ms", "_parked")

    def __init__(self) -> None:
        self._parked: dict[int, ParkedFetch] = {}
        self._due: dict[int, ParkedFetch] = {}
        self._next_deadline_ms: int | None = None

    def __len__(self) -> int:
        return len(self._parked) + len(self._due)

    @property
    def next_deadline_ms(self) -> int | None:
        """When the first is to be answered, None for none."""
        return DUE_NOW_MS if self._due else self._next_deadline_ms

    def park(self, fetch: ParkedFetch) -> bool:
        """Keep a request; returns False if there are too many already: then answer it at once."""
        if len(self) >= PARKED_FETCHES_MAX:
            return False
        self._parked[fetch.token] = fetch
        due = self._next_deadline_ms
        if due is None or fetch.deadline_ms < due:
            self._next_deadline_ms = fetch.deadline_ms
        return True

    def defer(self, woken: list[ParkedFetch]) -> None:
        """Keep requests that were taken out: they are due now, and nothing else wakes them."""
        self._due.update((one.token, one) for one in woken)

    def wake_at_or_below(self, end_offset: int) -> list[ParkedFetch]:
        """Take out those that wait for what a log with this end offset has."""
        return self._take([one for one in self._parked.values() if one.offset <= end_offset])

    def wake_all(self) -> list[ParkedFetch]:
        """Take out all that are not due anyway."""
        return self._take(list(self._parked.values()))

    def take_everything(self) -> list[ParkedFetch]:
        """Take out all, those that are due first."""
        due = list(self._due.values())
        self._due.clear()
        return due + self.wake_all()

    def expired(self, now_ms: int) -> list[ParkedFetch]:
        """Take out those that are due or have waited long enough; PARKED_WOKEN_MAX at a time."""
        if self._due:
            due = list(islice(self._due.values(), PARKED_WOKEN_MAX))
            for one in due:
                del self._due[one.token]
            return due
        deadline = self._next_deadline_ms
        if deadline is None or now_ms < deadline:
            return []
        waited = (one for one in self._parked.values() if one.deadline_ms <= now_ms)
        return self._take(list(islice(waited, PARKED_WOKEN_MAX)))

    def drop(self, token: int) -> None:
        """Forget a request for whose answer nobody waits any more."""
        self._due.pop(token, None)
        if self._parked.pop(token, None) is not None and not self._parked:
            self._next_deadline_ms = None

    def _take(self, woken: list[ParkedFetch]) -> list[ParkedFetch]:
        """Take these out."""
        for one in woken:
            del self._parked[one.token]
        if woken:
            left = (one.deadline_ms for one in self._parked.values())
            self._next_deadline_ms = min(left, default=None)
        return woken
