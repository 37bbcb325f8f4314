"""Events, effects, messages and batches in few words, for whoever has to understand a failure.

Fields and not dataclasses: what does not matter for elections and replication is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from kraftwire.errors import KraftwireError
from kraftwire.protocol.error_codes import error_name
from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.raft.batches import control_records
from kraftwire.records import RecordBatch, read_batches
from kraftwire.wire.message import Message

__all__ = ["batch", "batches", "effect", "election", "event", "message", "voters"]

_VALUE_SHOWN = 12
_VALUES_SHOWN = 4


def batch(data: bytes | memoryview) -> str:
    """A batch: its offsets, its epoch, what is in it."""
    try:
        found = RecordBatch(data)
        last = f"-{found.last_offset}" if found.last_offset > found.base_offset else ""
        place = f"{found.base_offset}{last} of epoch {found.partition_leader_epoch}"
        return f"{place} ({_inside(found)})"
    except (KraftwireError, struct.error, ValueError):
        return f"{len(data)} bytes"


def _inside(found: RecordBatch) -> str:
    if found.is_control:
        return ", ".join(_control(*record) for record in control_records(bytes(found.raw)))
    values = [bytes(record.value or b"")[:_VALUE_SHOWN] for record in found.records()]
    shown = ", ".join(value.decode("ascii", "replace") for value in values[:_VALUES_SHOWN])
    return shown + (", ..." if len(values) > _VALUES_SHOWN else "")


def _control(_offset: int, kind: Any, content: Message | None) -> str:
    name = getattr(kind, "name", f"type {kind}")
    if name == "LEADER_CHANGE":
        return f"leader {getattr(content, 'leader_id', '?')}"
    if name == "KRAFT_VERSION":
        return f"kraft.version {getattr(content, 'kraft_version', '?')}"
    if name == "KRAFT_VOTERS":
        keys = [(v.voter_id, v.voter_directory_id) for v in getattr(content, "voters", ())]
        return f"voters {voters(keys)}"
    return name.lower().replace("_", " ")


def batches(data: bytes | memoryview) -> str:
    """Batches one after the other."""
    try:
        return "; ".join(batch(one.raw) for one in read_batches(data))
    except (KraftwireError, struct.error, ValueError):
        return f"{len(data)} bytes"


def voters(keys: Sequence[tuple[int, bytes]]) -> str:
    """A voter set: ids, with the end of the directory id where there is one."""
    return ",".join(f"{k[0]}/{k[1][-2:].hex()}" if any(k[1]) else str(k[0]) for k in keys) or "none"


def election(state: do.ElectionState) -> str:
    """What the quorum-state file says."""
    parts = [f"epoch {state.epoch}"]
    if state.leader_id >= 0:
        parts.append(f"leader {state.leader_id}")
    if state.voted is not None:
        parts.append(f"vote for {state.voted.id}")
    return ", ".join(parts)


# ---- messages ------------------------------------------------------------------------------------


def message(what: Message) -> str:
    """A request or an answer."""
    words = _MESSAGES.get(what.NAME)
    if words is None:
        code = getattr(what, "error_code", 0)
        return what.NAME + (f" {_error(code)}" if code else "")
    return words(what)


def _error(code: int) -> str:
    return error_name(code) if code else "ok"


def _led(leader: int, epoch: int) -> str:
    return f"leader {leader} of {epoch}" if leader >= 0 else f"no leader of {epoch}"


def _vote_request(what: Any) -> str:
    p = what.topics[0].partitions[0]
    kind = "PreVote" if p.pre_vote else "Vote"
    log = f"{p.last_offset}-{p.last_offset_epoch}"
    return f"{kind}(epoch {p.replica_epoch}, for {p.replica_id}, log {log})"


def _vote_response(what: Any) -> str:
    if not what.topics:
        return f"VoteAnswer({_error(what.error_code)})"
    p = what.topics[0].partitions[0]
    said = "granted" if p.vote_granted else _error(p.error_code) if p.error_code else "refused"
    return f"VoteAnswer({said}, {_led(p.leader_id, p.leader_epoch)})"


def _fetch_request(what: Any) -> str:
    p = what.topics[0].partitions[0]
    at = f"{p.fetch_offset}-{p.last_fetched_epoch}"
    return f"Fetch(epoch {p.current_leader_epoch}, at {at})"


def _fetch_response(what: Any) -> str:
    if not what.responses:
        return f"FetchAnswer({_error(what.error_code)})"
    p = what.responses[0].partitions[0]
    parts = [_error(p.error_code)] if p.error_code else []
    if p.current_leader is not None:
        parts.append(_led(p.current_leader.leader_id, p.current_leader.leader_epoch))
    if not p.error_code:
        parts.append(f"mark {p.high_watermark}")
    if p.diverging_epoch is not None and p.diverging_epoch.epoch >= 0:
        parts.append(f"diverging {p.diverging_epoch.end_offset}-{p.diverging_epoch.epoch}")
    if p.snapshot_id is not None and p.snapshot_id.epoch >= 0:
        parts.append(f"snapshot {p.snapshot_id.end_offset}-{p.snapshot_id.epoch}")
    if p.records:
        parts.append(batches(p.records))
    return f"FetchAnswer({', '.join(parts)})"


def _snapshot_request(what: Any) -> str:
    p = what.topics[0].partitions[0]
    named = f"{p.snapshot_id.end_offset}-{p.snapshot_id.epoch}"
    return f"FetchSnapshot(epoch {p.current_leader_epoch}, {named} at byte {p.position})"


def _snapshot_response(what: Any) -> str:
    if not what.topics:
        return f"FetchSnapshotAnswer({_error(what.error_code)})"
    p = what.topics[0].partitions[0]
    size = len(p.unaligned_records or b"")
    said = _error(p.error_code) if p.error_code else f"{size} of {p.size} bytes at {p.position}"
    return f"FetchSnapshotAnswer({said})"


def _quorum_epoch(what: Any) -> str:
    p = what.topics[0].partitions[0]
    return f"{what.NAME.removesuffix('Request')}({_led(p.leader_id, p.leader_epoch)})"


def _quorum_epoch_answer(what: Any) -> str:
    name = what.NAME.removesuffix("Response") + "Answer"
    if not what.topics:
        return f"{name}({_error(what.error_code)})"
    p = what.topics[0].partitions[0]
    return f"{name}({_error(p.error_code)}, {_led(p.leader_id, p.leader_epoch)})"


def _voter_request(what: Any) -> str:
    key = voters([(what.voter_id, what.voter_directory_id)])
    return f"{what.NAME.removesuffix('Request')}({key})"


def _voter_answer(what: Any) -> str:
    return f"{what.NAME.removesuffix('Response')}Answer({_error(what.error_code)})"


_MESSAGES: dict[str, Callable[[Any], str]] = {
    "VoteRequest": _vote_request,
    "VoteResponse": _vote_response,
    "FetchRequest": _fetch_request,
    "FetchResponse": _fetch_response,
    "FetchSnapshotRequest": _snapshot_request,
    "FetchSnapshotResponse": _snapshot_response,
    "BeginQuorumEpochRequest": _quorum_epoch,
    "EndQuorumEpochRequest": _quorum_epoch,
    "BeginQuorumEpochResponse": _quorum_epoch_answer,
    "EndQuorumEpochResponse": _quorum_epoch_answer,
    "AddRaftVoterRequest": _voter_request,
    "RemoveRaftVoterRequest": _voter_request,
    "UpdateRaftVoterRequest": _voter_request,
    "AddRaftVoterResponse": _voter_answer,
    "RemoveRaftVoterResponse": _voter_answer,
    "UpdateRaftVoterResponse": _voter_answer,
}


# ---- events and effects --------------------------------------------------------------------------


def event(what: events.Event | None) -> str:
    """What a core got."""
    if what is None:
        return "start"
    if isinstance(what, events.RequestReceived | events.ResponseReceived):
        return message(what.message)
    if isinstance(what, events.RequestFailed):
        return f"request {what.request_id} failed: {_error(what.error)}"
    if isinstance(what, events.LogFlushed):
        return f"log durable to {what.end_offset}"
    if isinstance(what, events.AppendRequested):
        values = ", ".join(v[:_VALUE_SHOWN].decode("ascii", "replace") for v in what.values)
        return f"append {values}"
    name = "".join(f" {c.lower()}" if c.isupper() else c for c in type(what).__name__).strip()
    rest = [str(getattr(what, f)) for f in ("id", "epoch", "next_offset", "end_offset", "snapshot")
            if hasattr(what, f)]
    return " ".join([name, *rest])


def effect(what: do.Effect) -> str:
    """What a core asked for; empty for what explains nothing."""
    words = _EFFECTS.get(type(what))
    return words(what) if words is not None else ""


def _role(what: Any) -> str:
    leader = f" under {what.leader_id}" if what.new == "follower" else ""
    return f"{what.new} of {what.epoch}{leader}"


def _accepted(what: Any) -> str:
    last = f"-{what.last_offset}" if what.last_offset > what.base_offset else ""
    return f"accepts {what.base_offset}{last}"


def _note(what: Any) -> str:
    return f"{what.level}: {what.text}" if what.level in ("warning", "error", "critical") else ""


def _voters_changed(what: Any) -> str:
    keys = [(one.key.id, one.key.directory_id) for one in what.voters]
    return f"voters are {voters(keys)}, kraft.version {what.kraft_version}, by {what.offset}"


_EFFECTS: dict[type, Callable[[Any], str]] = {
    do.PersistQuorumState: lambda e: f"stores {election(e.state)}",
    do.AppendToLog: lambda e: f"appends {batches(e.data)}",
    do.TruncateLog: lambda e: f"cuts to {e.end_offset}",
    do.FlushLog: lambda e: f"flushes to {e.end_offset}",
    do.AppendToSnapshot: lambda e: f"keeps {len(e.data)} bytes of snapshot {e.id} at {e.position}",
    do.FinishSnapshot: lambda e: f"checks snapshot {e.id}",
    do.DiscardSnapshot: lambda e: f"discards snapshot {e.id}",
    do.ResetLog: lambda e: f"empties the log to {e.start}",
    do.DropLogPrefix: lambda e: f"drops the log below {e.start_offset}",
    do.WriteSnapshot: lambda e: f"writes snapshot {e.id}",
    do.SnapshotRefused: lambda e: f"writes no snapshot: {e.reason}",
    do.LoadSnapshot: lambda e: f"loads snapshot {e.id}",
    do.SendRequest: lambda e: f"asks {e.destination.id}: {message(e.message)}",
    do.SendReply: lambda e: f"answers {message(e.message)}",
    do.HighWatermarkAdvanced: lambda e: f"high watermark {e.offset}",
    do.DeliverCommitted: lambda e: f"delivers {e.start_offset}-{e.end_offset}",
    do.AppendAccepted: _accepted,
    do.AppendRefused: lambda e: f"refuses: {e.detail}",
    do.UpgradeDecided: lambda e: f"upgrade {_error(e.error)}",
    do.VotersChanged: _voters_changed,
    do.RoleChanged: _role,
    do.Note: _note,
    do.ShutdownFinished: lambda _: "stops",
}
