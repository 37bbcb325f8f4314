"""The events of a story for programs."""

from __future__ import annotations

from typing import Any

from kraftwire.story.events import Event, Events

__all__ = ["events_to_json"]


def events_to_json(events: Events, *, subject: str, who: str, number: str) -> list[dict[str, Any]]:
    """Return the events in order of time. The arguments are the keys for an event's attributes."""

    def to_json(event: Event) -> dict[str, Any]:
        return {
            "time": event.time,
            "kind": event.kind,
            subject: event.subject,
            who: event.who or None,
            number: event.number,
            "text": event.text,
            "details": event.details,
            "count": event.count,
            "last": event.last,
        }

    return [to_json(each) for each in events.in_order()]
