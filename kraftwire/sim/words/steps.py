"""The events and effects of a core in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.words.ballots import stored, voters
from kraftwire.sim.words.contents import batches, position, span, values
from kraftwire.sim.words.lists import listed
from kraftwire.sim.words.messages import error, message


def event(what: events.Event | None) -> str:
    """Describe an event; None stands for the start of the core."""
    if what is None:
        return "start"
    words = _EVENTS.get(type(what))
    if words is not None:
        return words(what)
    name = "".join(f" {c.lower()}" if c.isupper() else c for c in type(what).__name__).strip()
    rest = [_plain(getattr(what, f)) for f in _PLACES if hasattr(what, f)]
    return " ".join([name, *rest])


_PLACES = ("id", "epoch", "next_offset", "end_offset", "snapshot")


def _plain(what: Any) -> str:
    return _at(what) if isinstance(what, OffsetAndEpoch) else str(what)


def _at(what: OffsetAndEpoch) -> str:
    return position(what.offset, what.epoch)


_EVENTS: dict[type, Callable[[Any], str]] = {
    events.RequestReceived: lambda e: message(e.message, e.version),
    events.ResponseReceived: lambda e: message(e.message),
    events.RequestFailed: lambda e: f"request failed: {error(e.error)}",
    events.LogFlushed: lambda e: f"log durable to {e.end_offset}",
    events.AppendRequested: lambda e: f"append {values(e.values)}",
}


_FETCHED = "FetchResponse"


def effects(found: Iterable[do.Effect], cause: events.Event | None = None) -> list[str]:
    """Describe effects in order, except those that explain nothing.

    Requests with the same fields share one text, as do records that came with the cause.
    """
    told: dict[str, list[int]] = {}
    has_records = isinstance(cause, events.ResponseReceived) and cause.message.NAME == _FETCHED
    for one in found:
        if isinstance(one, do.SendRequest):
            told.setdefault(message(one.message), []).append(one.destination.id)
        elif isinstance(one, do.AppendToLog) and has_records:
            told.setdefault("appends these records", [])
        elif (words := _EFFECTS.get(type(one))) is not None:
            told.setdefault(words(one), [])
    return [f"asks {listed(to)}: {text}" if to else text for text, to in told.items() if text]


def _role(what: Any) -> str:
    leader = f" under leader {what.leader_id}" if what.new == "follower" else ""
    return f"{what.new} in epoch {what.epoch}{leader}"


def _note(what: Any) -> str:
    return f"{what.level}: {what.text}" if what.level in ("warning", "error", "critical") else ""


def _voters_changed(what: Any) -> str:
    keys = [(one.key.id, one.key.directory_id) for one in what.voters]
    return f"voters {voters(keys)} kraft.version {what.kraft_version} at {what.offset}"


_EFFECTS: dict[type, Callable[[Any], str]] = {
    do.PersistQuorumState: lambda e: f"stores {stored(e.state)}",
    do.AppendToLog: lambda e: f"appends {batches(e.data)}",
    do.TruncateLog: lambda e: f"truncates to {e.end_offset}",
    do.FlushLog: lambda e: f"flushes to {e.end_offset}",
    do.AppendToSnapshot: lambda e: (
        f"keeps bytes {e.position}-{e.position + len(e.data)} of snapshot {_at(e.id)}"
    ),
    do.FinishSnapshot: lambda e: f"checks snapshot {_at(e.id)}",
    do.DiscardSnapshot: lambda e: f"discards snapshot {_at(e.id)}",
    do.ResetLog: lambda e: f"empties the log, which starts at {_at(e.start)}",
    do.DropLogPrefix: lambda e: f"drops the log below {e.start_offset}",
    do.WriteSnapshot: lambda e: f"writes snapshot {_at(e.id)}",
    do.SnapshotRefused: lambda e: f"writes no snapshot: {e.reason}",
    do.LoadSnapshot: lambda e: f"loads snapshot {_at(e.id)}",
    do.SendReply: lambda e: f"answers {message(e.message)}",
    do.HighWatermarkAdvanced: lambda e: f"high watermark {e.offset}",
    do.DeliverCommitted: lambda e: f"delivers {e.start_offset}-{e.end_offset}",
    do.AppendAccepted: lambda e: f"accepts {span(e.base_offset, e.last_offset)}",
    do.AppendRefused: lambda e: f"refuses: {e.detail}",
    do.UpgradeDecided: lambda e: f"upgrade {error(e.error)}",
    do.VotersChanged: _voters_changed,
    do.RoleChanged: _role,
    do.Note: _note,
    do.ShutdownFinished: lambda _: "stops",
}
