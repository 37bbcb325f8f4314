"""Replaces events that repeat many times by one event with their count.

Owns the rules by which events count as repetitions. Only repeated lines are left out; the events
themselves are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kraftwire.decode.text import count_text, duration_text, ids_text, with_remarks
from kraftwire.story.raft.model import RaftEvent

# Events that change something are never folded, however often they happen.
_APART = frozenset(
    {
        "conflict",
        "kraft-version",
        "leader",
        "resign",
        "snapshot-file",
        "snapshot-written",
        "truncation",
        "voters",
        "voters-undone",
    }
)
# Failed elections raise the epoch each time.
_ANY_EPOCH = frozenset({"pre-vote", "vote"})

# After this pause, a repetition is news again.
_NEWS_S = 60.0
# Fold from this many events on; two are shown separately.
_COUNT_MIN = 3

# Durations and sizes differ between repetitions. Offsets count as different: they show progress.
_MEASURED = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:us|ms|s|min|B|KiB|MiB|GiB)\b")


@dataclass(slots=True)
class _Repetition:
    """Repetitions of an event; `first` stands for all."""

    first: RaftEvent
    last: RaftEvent
    rest: list[RaftEvent]


def fold_repetitions(events: Iterable[RaftEvent]) -> list[RaftEvent]:
    """Return events in order of time, repetitions folded into one event with their count.

    Order: `events` are in order of time.
    """
    latest: dict[tuple[Any, ...], _Repetition] = {}
    all_repetitions: list[_Repetition] = []
    for event in _arrivals_together(events):
        key = _key(event)
        known = latest.get(key)
        if known is not None and event.time - known.last.time <= _NEWS_S:
            known.rest.append(event)
            known.last = event
            continue
        known = _Repetition(event, event, [])
        all_repetitions.append(known)
        if event.kind not in _APART:
            latest[key] = known
    folded_events = [each for repetition in all_repetitions for each in _events(repetition)]
    return sorted(folded_events, key=lambda each: each.time)


def _key(event: RaftEvent) -> tuple[Any, ...]:
    epoch = None if event.kind in _ANY_EPOCH else event.epoch
    return event.kind, event.node, epoch, _MEASURED.sub("", event.text)


def _events(repetition: _Repetition) -> Iterator[RaftEvent]:
    first, last = repetition.first, repetition.last
    if 1 + len(repetition.rest) < _COUNT_MIN:
        yield from (first, *repetition.rest)
        return
    count = sum(each.details.get("count", 1) for each in (first, *repetition.rest))
    remarks = [f"{count_text(count, 'time')} in {duration_text(last.time - first.time)}"]
    if last.epoch is not None and last.epoch != first.epoch:
        remarks.append(f"up to epoch {last.epoch}")
    text = with_remarks(_without_count(first), remarks)
    details = {**first.details, "count": count, "until": last.time}
    yield replace(first, text=text, details=details)


def _without_count(event: RaftEvent) -> str:
    """Return an event's text without its own count of repetitions."""
    count = event.details.get("count", 1)
    for remark in (f", {count_text(count, 'time')})", f" ({count_text(count, 'time')})"):
        if count > 1 and event.text.endswith(remark):
            return event.text.removesuffix(remark) + ")" * remark.startswith(",")
    return event.text


def _arrivals_together(events: Iterable[RaftEvent]) -> Iterator[RaftEvent]:
    """Yield the events, with consecutive first fetches of many replicas as one event."""
    run: list[RaftEvent] = []
    for event in events:
        if run and (event.kind, event.details.get("kind")) != ("fetch", run[0].details["kind"]):
            yield from _arrived(run)
            run = []
        if event.kind == "fetch":
            run.append(event)
        else:
            yield event
    yield from _arrived(run)


def _arrived(run: list[RaftEvent]) -> Iterator[RaftEvent]:
    if len(run) <= _COUNT_MIN:
        yield from run
        return
    nodes = [each.node for each in run if each.node is not None]
    offsets = sorted(each.details["offset"] for each in run)
    at = f"offset {offsets[0]}"
    if offsets[0] != offsets[-1]:
        at = f"offsets {offsets[0]} to {offsets[-1]}"
    kind = run[0].details["kind"]
    begins = all(each.details["begins"] for each in run)
    text = f"{kind}s {ids_text(nodes)} {'begin to fetch' if begins else 'fetch'} at {at}"
    text = with_remarks(text, [count_text(len(run), kind)])
    details = {**run[0].details, "nodes": nodes, "count": len(run), "until": run[-1].time}
    details["begins"] = begins
    yield RaftEvent(run[0].time, "fetch", text, None, None, details)
