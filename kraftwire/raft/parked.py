"""Fetch requests that a leader holds back until there is something to tell.

Order: whatever wakes several answers them in the order in which they came.

Source: Kafka's `ThresholdPurgatory`; R-FET-13, R-FET-14.
"""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.limits import PARKED_FETCHES_MAX
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
    """The requests at rest. Shape: `next_deadline_ms` is when the first gives up, None for none."""

    __slots__ = ("_parked", "next_deadline_ms")

    def __init__(self) -> None:
        self._parked: list[ParkedFetch] = []
        self.next_deadline_ms: int | None = None

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, fetch: ParkedFetch) -> bool:
        """Keep a request; returns False if there are too many already: then answer it at once."""
        if len(self._parked) >= PARKED_FETCHES_MAX:
            return False
        self._parked.append(fetch)
        due = self.next_deadline_ms
        if due is None or fetch.deadline_ms < due:
            self.next_deadline_ms = fetch.deadline_ms
        return True

    def wake_at_or_below(self, end_offset: int) -> list[ParkedFetch]:
        """Take out those that wait for what a log with this end offset has."""
        return self._take([fetch.offset <= end_offset for fetch in self._parked])

    def wake_all(self) -> list[ParkedFetch]:
        """Take out all."""
        woken = self._parked
        self._parked = []
        self.next_deadline_ms = None
        return woken

    def expired(self, now_ms: int) -> list[ParkedFetch]:
        """Take out those that have waited long enough."""
        due = self.next_deadline_ms
        if due is None or now_ms < due:
            return []
        return self._take([fetch.deadline_ms <= now_ms for fetch in self._parked])

    def drop(self, token: int) -> None:
        """Forget a request for whose answer nobody waits any more."""
        self._take([fetch.token == token for fetch in self._parked])

    def _take(self, chosen: list[bool]) -> list[ParkedFetch]:
        """Take out the chosen ones."""
        if all(chosen):
            return self.wake_all()
        if not any(chosen):
            return []
        parked = self._parked
        woken = [fetch for fetch, take in zip(parked, chosen, strict=True) if take]
        self._parked = [fetch for fetch, take in zip(parked, chosen, strict=True) if not take]
        self.next_deadline_ms = min(fetch.deadline_ms for fetch in self._parked)
        return woken
