"""The events of a story, in order of time, limited in number; repeated remarks are one event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kraftwire.capture.recorded import TimeSpan
from kraftwire.decode.text import duration_text

# Stories of groups, transactions and topics keep this many events and count the rest. An event with
# its texts takes up to a kilobyte.
STORY_EVENTS_MAX = 20_000


# Kinds of events that may repeat many times for a member.
_REMARKS = frozenset({"error", "status"})


@dataclass(slots=True)
class Event:
    """An event of a story, which is one line in print.

    `kind` is a stable word for programs; `text` describes the event for people; `subject` is the
    group, transactional id or topic; `who` is the member or client; `number` is the generation or
    epoch. The event happened `count` times, the last time at `last`.
    """

    time: float
    kind: str
    subject: str
    text: str
    who: str = ""
    number: int | None = None
    details: dict[str, Any] = field(default_factory=dict)
    count: int = 1
    last: float = 0.0


def hole_facts(hole: TimeSpan) -> tuple[str, dict[str, Any]]:
    """Return text and details of the event of a time of which nothing was recorded."""
    start, end = hole
    text = f"nothing is recorded for {duration_text(end - start)}"
    return text, {"until": end, "seconds": end - start}


class Events:
    """Gathers the events of a story; beyond a limit they are only counted."""

    def __init__(self) -> None:
        self._all: list[Event] = []
        # Subject and member -> remarks since its last event of another kind, which may repeat.
        self._repeatable: dict[tuple[str, str], dict[tuple[str, str], Event]] = {}
        self.overflow = 0
        self.not_recorded: list[TimeSpan] = []

    def note_holes(self, holes: Iterable[TimeSpan]) -> None:
        """Add the times of which nothing was recorded, each an event without a subject."""
        for hole in holes:
            self.not_recorded.append(hole)
            text, details = hole_facts(hole)
            self.add(Event(hole[0], "not-recorded", "", text, details=details))

    def seconds(self, start: float, end: float) -> float:
        """Return how much of a time was recorded."""
        return max(0.0, end - start - sum(last - first for first, last in self.not_recorded))

    def add(self, event: Event) -> None:
        """Add an event; a repeated refusal or remark is folded into the earlier one."""
        event.last = event.time
        key = event.subject, event.who
        remarks = self._repeatable.get(key)
        before = remarks.get((event.kind, event.text)) if remarks else None
        if before is not None:
            before.count += 1
            before.last = event.time
            return
        if len(self._all) >= STORY_EVENTS_MAX:
            self.overflow += 1
            return
        if event.kind not in _REMARKS:
            self._repeatable.pop(key, None)
        else:
            self._repeatable.setdefault(key, {})[event.kind, event.text] = event
        self._all.append(event)

    def in_order(self) -> list[Event]:
        """Return the events in order of time."""
        return sorted(self._all, key=lambda each: each.time)
