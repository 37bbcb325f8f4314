"""Facts of the APIs of a KRaft quorum and of its controllers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.render.facts.words import bytes_text, partitions_text, some

__all__ = [
    "alter_partition_request",
    "begin_quorum_epoch_request",
    "broker_heartbeat_request",
    "broker_heartbeat_response",
    "broker_registration_request",
    "broker_registration_response",
    "controller_registration_request",
    "describe_quorum_response",
    "end_quorum_epoch_request",
    "envelope_request",
    "fetch_snapshot_request",
    "fetch_snapshot_response",
    "leader_and_epoch_response",
    "raft_voter_request",
    "vote_request",
    "vote_response",
]


def _partitions(topics: Any) -> Iterator[Any]:
    for topic in topics:
        yield from topic.partitions


def vote_request(body: Any, _names: TopicNames) -> str:
    """Candidate, epoch, end of its log."""
    texts = []
    for each in _partitions(body.topics):
        kind = "pre-vote" if each.pre_vote else "vote"
        end = f"log end {each.last_offset}/{each.last_offset_epoch}"
        texts.append(f"{kind} for {each.replica_id} epoch {each.replica_epoch}, {end}")
    if body.voter_id >= 0:
        texts.append(f"voter {body.voter_id}")
    return ", ".join(texts)


def vote_response(body: Any, _names: TopicNames) -> str:
    """Granted or not, and the voter's epoch and leader."""
    texts = []
    for each in _partitions(body.topics):
        text = "granted" if each.vote_granted else "refused"
        texts.append(f"{text}, {_leader(each)}")
    return "; ".join(texts)


def _leader(each: Any) -> str:
    leader = f"leader {each.leader_id}" if each.leader_id >= 0 else "no leader"
    return f"{leader} epoch {each.leader_epoch}"


def begin_quorum_epoch_request(body: Any, _names: TopicNames) -> str:
    """Leader and epoch."""
    texts = [_leader(each) for each in _partitions(body.topics)]
    if body.voter_id >= 0:
        texts.append(f"voter {body.voter_id}")
    return ", ".join(texts)


def end_quorum_epoch_request(body: Any, _names: TopicNames) -> str:
    """Leader, epoch and whom it prefers as successor."""
    texts = []
    for each in _partitions(body.topics):
        preferred = [p.candidate_id for p in each.preferred_candidates]
        preferred = preferred or each.preferred_successors
        successors = f", successors {some(preferred)}" if preferred else ""
        texts.append(f"{_leader(each)}{successors}")
    return "; ".join(texts)


def leader_and_epoch_response(body: Any, _names: TopicNames) -> str:
    """What the receiver holds for leader and epoch."""
    return "; ".join(map(_leader, _partitions(body.topics)))


def describe_quorum_response(body: Any, _names: TopicNames) -> str:
    """Leader, epoch, high watermark, voters and observers."""
    texts = []
    for each in _partitions(body.topics):
        text = f"{_leader(each)}, hw {each.high_watermark}"
        text += f", voters {some([v.replica_id for v in each.current_voters])}"
        if each.observers:
            text += f", observers {some([v.replica_id for v in each.observers])}"
        texts.append(text)
    return "; ".join(texts)


def fetch_snapshot_request(body: Any, _names: TopicNames) -> str:
    """Snapshot, position and replica."""
    texts = []
    for each in _partitions(body.topics):
        id = each.snapshot_id
        texts.append(f"snapshot {id.end_offset}-{id.epoch} from byte {each.position}")
    return f"{'; '.join(texts)} replica {body.replica_id}"


def fetch_snapshot_response(body: Any, _names: TopicNames) -> str:
    """How much of the snapshot came."""
    texts = []
    for each in _partitions(body.topics):
        size = len(each.unaligned_records or b"")
        texts.append(f"{bytes_text(size)} of {bytes_text(each.size)}")
    return "; ".join(texts)


def raft_voter_request(body: Any, _names: TopicNames) -> str:
    """The voter, and where it listens."""
    listeners = [f"{e.host}:{e.port}" for e in getattr(body, "listeners", None) or ()]
    return f"voter {body.voter_id} at {some(listeners)}" if listeners else f"voter {body.voter_id}"


def broker_registration_request(body: Any, _names: TopicNames) -> str:
    """Broker and listeners."""
    return f"broker {body.broker_id} at {some([f'{e.host}:{e.port}' for e in body.listeners])}"


def broker_registration_response(body: Any, _names: TopicNames) -> str:
    """The broker epoch."""
    return f"broker epoch {body.broker_epoch}"


def broker_heartbeat_request(body: Any, _names: TopicNames) -> str:
    """Broker, how far it has read the metadata log, and its wishes."""
    text = f"broker {body.broker_id} metadata offset {body.current_metadata_offset}"
    if body.want_fence:
        text += ", wants fence"
    return f"{text}, wants shutdown" if body.want_shut_down else text


def broker_heartbeat_response(body: Any, _names: TopicNames) -> str:
    """What the controller makes of the broker."""
    flags = ["caught up" if body.is_caught_up else "behind"]
    flags += ["fenced"] if body.is_fenced else []
    return ", ".join(flags + (["should shut down"] if body.should_shut_down else []))


def controller_registration_request(body: Any, _names: TopicNames) -> str:
    """Controller and listeners."""
    listeners = some([f"{each.host}:{each.port}" for each in body.listeners])
    return f"controller {body.controller_id} at {listeners}"


def alter_partition_request(body: Any, names: TopicNames) -> str:
    """Broker and partitions."""
    return f"broker {body.broker_id} {partitions_text(body.topics, names, 'partitions')}"


def envelope_request(body: Any, _names: TopicNames) -> str:
    """The API of the request inside."""
    data = body.request_data
    if len(data) < 4:
        return "no request inside"
    key = int.from_bytes(data[:2], "big", signed=True)
    version = int.from_bytes(data[2:4], "big", signed=True)
    return f"{messages.API_NAMES.get(key, f'API {key}')} v{version}, {bytes_text(len(data))}"
