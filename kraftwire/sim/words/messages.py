"""Requests and responses in words: name, version, and the fields that matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftwire.protocol.error_codes import error_name
from kraftwire.protocol.versions import fetching_replica
from kraftwire.sim.words.ballots import key
from kraftwire.sim.words.contents import batches, position
from kraftwire.wire.message import Message


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
