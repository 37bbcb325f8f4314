"""Short descriptions of events, effects, messages, batches and votes, for failure reports.

A position is `offset@epoch`. Fields have the names of the schemas; what does not matter for
elections and replication is left out. Values of records are shown up to their first byte that is
not text; a directory id is shown in full in evidence, and by its last four characters elsewhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kraftwire.errors import KraftwireError
from kraftwire.protocol.error_codes import error_name
from kraftwire.protocol.versions import fetching_replica
from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.raft.batches import control_records
from kraftwire.raft.effects import ElectionState
from kraftwire.records import RecordBatch, read_batches
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message


def listed(nodes: Sequence[int]) -> str:
    """Join ids for a sentence."""
    names = [str(node) for node in nodes]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of rows with equally many cells."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


_TAIL = 4


def replica(node: int, directory_id: bytes = b"") -> str:
    """Describe a replica: its id, and its directory id if known."""
    return f"{node} (directory {uuid_to_text(directory_id)})" if any(directory_id) else str(node)


def key(node: int, directory_id: bytes) -> str:
    """Describe a replica briefly: its id, and the end of its directory id."""
    return f"{node}/{uuid_to_text(directory_id)[-_TAIL:]}" if any(directory_id) else str(node)


def voters(keys: Sequence[tuple[int, bytes]]) -> str:
    """Describe a voter set: ids, each with the end of its directory id if there is one."""
    return ", ".join(key(*one) for one in keys) or "nobody"


def vote(
    voter: int, epoch: int, candidate: int, directory_id: bytes = b"", own_id: bytes = b""
) -> str:
    """Describe a vote: voter, epoch and candidate, -1 for none.

    `directory_id` is that of the candidate, `own_id` that of the voter.
    """
    given = f"for candidate {replica(candidate, directory_id)}" if candidate >= 0 else "none"
    return f"voter {replica(voter, own_id)}, epoch {epoch}, vote {given}"


def election(state: ElectionState) -> str:
    """Describe the contents of a quorum-state file, with whole directory ids."""
    return _election(state, replica)


def stored(state: ElectionState) -> str:
    """Describe the contents of a quorum-state file briefly."""
    return _election(state, key)


def _election(state: ElectionState, named: Callable[[int, bytes], str]) -> str:
    parts = [f"epoch {state.epoch}"]
    if state.leader_id >= 0:
        parts.append(f"leader {state.leader_id}")
    if state.voted is not None:
        parts.append(f"vote for candidate {named(state.voted.id, state.voted.directory_id)}")
    return ", ".join(parts)


_VALUE_SHOWN = 16
_VALUES_SHOWN = 4
_BATCHES_SHOWN = 3
_TEXT = range(0x20, 0x7F)


def position(offset: int, epoch: int) -> str:
    """Describe a position in a log: the offset, and the epoch of the record before it."""
    return f"{offset}@{epoch}"


def span(first: int, last: int) -> str:
    """Describe a range of offsets."""
    return f"{first}-{last}" if last > first else str(first)


def value(data: bytes) -> str:
    """Describe a record's value: its text up to the first byte that is not text; else its size."""
    end = next((place for place, byte in enumerate(data) if byte not in _TEXT), len(data))
    if not end:
        return f"{len(data)} bytes" if data else "empty"
    return data[: min(end, _VALUE_SHOWN)].decode("ascii")


def values(found: Sequence[bytes | None]) -> str:
    """Describe the first few of some values."""
    shown = [value(bytes(one)) if one is not None else "null" for one in found[:_VALUES_SHOWN]]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f", {more} more" if more else "")


def batch(data: bytes | memoryview) -> str:
    """Describe a batch: its offsets, its epoch, its records."""
    try:
        found = RecordBatch(data)
        place = f"{span(found.base_offset, found.last_offset)} epoch {found.partition_leader_epoch}"
        return f"{place} ({_inside(found)})"
    except (KraftwireError, struct.error, ValueError):
        return f"{len(data)} bytes that are not a batch"


def _inside(found: RecordBatch) -> str:
    if found.is_control:
        return ", ".join(_control(*record) for record in control_records(bytes(found.raw)))
    return values([record.value for record in found.records()])


def _control(_offset: int, kind: Any, content: Message | None) -> str:
    name = getattr(kind, "name", f"control record of type {kind}")
    if name == "LEADER_CHANGE":
        return f"leader {getattr(content, 'leader_id', '?')}"
    if name == "KRAFT_VERSION":
        return f"kraft.version {getattr(content, 'kraft_version', '?')}"
    if name == "KRAFT_VOTERS":
        keys = [(v.voter_id, v.voter_directory_id) for v in getattr(content, "voters", ())]
        return f"voters {voters(keys)}"
    return name.lower().replace("_", " ")


def batches(data: bytes | memoryview) -> str:
    """Describe batches in order; of many, the first ones and the last."""
    try:
        found = list(read_batches(data))
        shown = [batch(one.raw) for one in found[:_BATCHES_SHOWN]]
        if len(found) > _BATCHES_SHOWN:
            more = len(found) - _BATCHES_SHOWN
            shown.append(f"{more} more batches up to {found[-1].last_offset}")
        return "; ".join(shown)
    except (KraftwireError, struct.error, ValueError):
        return f"{len(data)} bytes that are not batches"


def committed(end: int, last: bytes | None) -> str:
    """Describe the committed part of a log: its end and its last batch; None if it is empty."""
    return "nothing" if last is None else f"up to {end}, last batch {batch(last)}"


def high_watermark(offset: int) -> str:
    """Describe a replica's high watermark; a negative one is unknown."""
    return f"high watermark {offset if offset >= 0 else 'unknown'}"


def error(code: int) -> str:
    """Return the name of an error code; `ok` for none."""
    return error_name(code) if code else "ok"


def message(what: Message, version: int | None = None) -> str:
    """Describe a request or a response, without a version if none is chosen yet."""
    fields = _FIELDS.get(what.NAME, _rest)(what)
    title = what.NAME.removesuffix("Request")
    if version is not None:
        title += f" v{version}"
    return f"{title} {fields}".rstrip()


def _rest(what: Any) -> str:
    """Describe the error code of a response."""
    return error(what.error_code) if hasattr(what, "error_code") else ""


def _leader(leader: int, epoch: int) -> str:
    return f"leader {leader if leader >= 0 else 'none'} epoch {epoch}"


def _vote_request(what: Any) -> str:
    p = what.topics[0].partitions[0]
    kind = "pre-vote " if p.pre_vote else ""
    candidate = key(p.replica_id, p.replica_directory_id)
    last = position(p.last_offset, p.last_offset_epoch)
    return f"{kind}epoch {p.replica_epoch} candidate {candidate} last {last}"


def _vote_response(what: Any) -> str:
    if not what.topics:
        return error(what.error_code)
    p = what.topics[0].partitions[0]
    said = "granted" if p.vote_granted else error(p.error_code) if p.error_code else "not granted"
    return f"{said} {_leader(p.leader_id, p.leader_epoch)}"


def _fetch_request(what: Any) -> str:
    p = what.topics[0].partitions[0]
    at = position(p.fetch_offset, p.last_fetched_epoch)
    return f"replica {fetching_replica(what)} epoch {p.current_leader_epoch} at {at}"


def _fetch_response(what: Any) -> str:
    if not what.responses:
        return error(what.error_code)
    p = what.responses[0].partitions[0]
    parts = [error(p.error_code)] if p.error_code else []
    if p.current_leader is not None:
        parts.append(_leader(p.current_leader.leader_id, p.current_leader.leader_epoch))
    if not p.error_code:
        parts.append(f"high watermark {p.high_watermark}")
    if p.diverging_epoch is not None and p.diverging_epoch.epoch >= 0:
        parts.append(f"diverging {position(p.diverging_epoch.end_offset, p.diverging_epoch.epoch)}")
    if p.snapshot_id is not None and p.snapshot_id.epoch >= 0:
        parts.append(f"snapshot {position(p.snapshot_id.end_offset, p.snapshot_id.epoch)}")
    if p.records:
        parts.append(f"records {batches(p.records)}")
    return " ".join(parts)


def _snapshot_request(what: Any) -> str:
    p = what.topics[0].partitions[0]
    named = position(p.snapshot_id.end_offset, p.snapshot_id.epoch)
    at = f"snapshot {named} byte {p.position}"
    return f"replica {what.replica_id} epoch {p.current_leader_epoch} {at}"


def _snapshot_response(what: Any) -> str:
    if not what.topics:
        return error(what.error_code)
    p = what.topics[0].partitions[0]
    if p.error_code:
        return error(p.error_code)
    size = len(p.unaligned_records or b"")
    named = position(p.snapshot_id.end_offset, p.snapshot_id.epoch)
    return f"snapshot {named} bytes {p.position}-{p.position + size} of {p.size}"


def _quorum_epoch(what: Any) -> str:
    p = what.topics[0].partitions[0]
    return _leader(p.leader_id, p.leader_epoch)


def _quorum_epoch_response(what: Any) -> str:
    if not what.topics:
        return error(what.error_code)
    p = what.topics[0].partitions[0]
    return f"{error(p.error_code)} {_leader(p.leader_id, p.leader_epoch)}"


def _voter_request(what: Any) -> str:
    return f"voter {key(what.voter_id, what.voter_directory_id)}"


_FIELDS: dict[str, Callable[[Any], str]] = {
    "VoteRequest": _vote_request,
    "VoteResponse": _vote_response,
    "FetchRequest": _fetch_request,
    "FetchResponse": _fetch_response,
    "FetchSnapshotRequest": _snapshot_request,
    "FetchSnapshotResponse": _snapshot_response,
    "BeginQuorumEpochRequest": _quorum_epoch,
    "EndQuorumEpochRequest": _quorum_epoch,
    "BeginQuorumEpochResponse": _quorum_epoch_response,
    "EndQuorumEpochResponse": _quorum_epoch_response,
    "AddRaftVoterRequest": _voter_request,
    "RemoveRaftVoterRequest": _voter_request,
    "UpdateRaftVoterRequest": _voter_request,
}


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
    texts: dict[str, list[int]] = {}
    has_records = isinstance(cause, events.ResponseReceived) and cause.message.NAME == _FETCHED
    for one in found:
        if isinstance(one, do.SendRequest):
            texts.setdefault(message(one.message), []).append(one.destination.id)
        elif isinstance(one, do.AppendToLog) and has_records:
            texts.setdefault("appends these records", [])
        elif (words := _EFFECTS.get(type(one))) is not None:
            texts.setdefault(words(one), [])
    return [f"asks {listed(to)}: {text}" if to else text for text, to in texts.items() if text]


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
