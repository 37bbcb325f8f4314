"""Facts of the APIs of a KRaft quorum and of its controllers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.context import TopicNames
from kraftwire.inspect.facts.phrases import (
    bytes_text,
    each_partition,
    ids_text,
    partitions_text,
    place_text,
    some,
)
from kraftwire.wire.json_form import uuid_to_text


def _partitions(topics: Any) -> Iterator[Any]:
    for topic in topics:
        yield from topic.partitions


def vote_request(body: Any, _names: TopicNames) -> str:
    """Give the candidate, its epoch, and the end of its log."""
    texts = []
    for each in _partitions(body.topics):
        kind = "pre-vote" if each.pre_vote else "vote"
        end = f"log end {each.last_offset}/{each.last_offset_epoch}"
        texts.append(f"{kind} for {each.replica_id} epoch {each.replica_epoch}, {end}")
    texts = texts or ["no partitions"]
    if body.voter_id >= 0:
        texts.append(f"voter {body.voter_id}")
    return ", ".join(texts)


def vote_response(body: Any, _names: TopicNames) -> str:
    """Say whether the vote was granted, and give the voter's epoch and leader."""
    texts = []
    for each in _partitions(body.topics):
        text = "granted" if each.vote_granted else "refused"
        texts.append(f"{text}, {_leader(each)}")
    return "; ".join(texts)


def _leader(each: Any) -> str:
    leader = f"leader {each.leader_id}" if each.leader_id >= 0 else "no leader"
    return f"{leader} epoch {each.leader_epoch}"


def begin_quorum_epoch_request(body: Any, _names: TopicNames) -> str:
    """Give leader and epoch."""
    texts = [_leader(each) for each in _partitions(body.topics)]
    texts = texts or ["no partitions"]
    if body.voter_id >= 0:
        texts.append(f"voter {body.voter_id}")
    return ", ".join(texts)


def end_quorum_epoch_request(body: Any, _names: TopicNames) -> str:
    """Give leader and epoch, and the successors that the leader prefers."""
    texts = []
    for each in _partitions(body.topics):
        preferred = [p.candidate_id for p in each.preferred_candidates]
        preferred = preferred or each.preferred_successors
        successors = f", successors {some(preferred)}" if preferred else ""
        texts.append(f"{_leader(each)}{successors}")
    return "; ".join(texts) or "no partitions"


def leader_and_epoch_response(body: Any, _names: TopicNames) -> str:
    """Give the leader and epoch that the receiver knows."""
    return "; ".join(map(_leader, _partitions(body.topics)))


def describe_quorum_response(body: Any, _names: TopicNames) -> str:
    """Give leader, epoch, high watermark, voters and observers."""
    texts = []
    for each in _partitions(body.topics):
        text = f"{_leader(each)}, hw {each.high_watermark}"
        text += f", voters {some([v.replica_id for v in each.current_voters])}"
        if each.observers:
            text += f", observers {some([v.replica_id for v in each.observers])}"
        texts.append(text)
    return "; ".join(texts)


def fetch_snapshot_request(body: Any, _names: TopicNames) -> str:
    """Give snapshot, position and replica."""
    texts = []
    for each in _partitions(body.topics):
        id = each.snapshot_id
        texts.append(f"snapshot {id.end_offset}-{id.epoch} from byte {each.position}")
    return f"{'; '.join(texts)} replica {body.replica_id}"


def fetch_snapshot_response(body: Any, _names: TopicNames) -> str:
    """Say how much of the snapshot the response holds."""
    texts = []
    for each in _partitions(body.topics):
        size = len(each.unaligned_records or b"")
        texts.append(f"{bytes_text(size)} of {bytes_text(each.size)}")
    return "; ".join(texts)


def raft_voter_request(body: Any, _names: TopicNames) -> str:
    """Give the voter and its listeners."""
    listeners = [f"{e.host}:{e.port}" for e in getattr(body, "listeners", None) or ()]
    return f"voter {body.voter_id} at {some(listeners)}" if listeners else f"voter {body.voter_id}"


def broker_registration_request(body: Any, _names: TopicNames) -> str:
    """Give broker and listeners."""
    return f"broker {body.broker_id} {_at(body.listeners)}"


def broker_registration_response(body: Any, _names: TopicNames) -> str:
    """Give the broker epoch."""
    return f"broker epoch {body.broker_epoch}"


def broker_heartbeat_request(body: Any, _names: TopicNames) -> str:
    """Give the broker, its offset in the metadata log, and whether it wants fencing or shutdown."""
    text = f"broker {body.broker_id} metadata offset {body.current_metadata_offset}"
    if body.want_fence:
        text += ", wants fence"
    return f"{text}, wants shutdown" if body.want_shut_down else text


def broker_heartbeat_response(body: Any, _names: TopicNames) -> str:
    """Give the broker's state as the controller sees it."""
    flags = ["caught up" if body.is_caught_up else "behind"]
    flags += ["fenced"] if body.is_fenced else []
    return ", ".join(flags + (["should shut down"] if body.should_shut_down else []))


def controller_registration_request(body: Any, _names: TopicNames) -> str:
    """Give controller and listeners."""
    return f"controller {body.controller_id} {_at(body.listeners)}"


def _at(listeners: list[Any]) -> str:
    shown = some([f"{each.host}:{each.port}" for each in listeners])
    return f"at {shown}" if shown else "without listeners"


def alter_partition_request(body: Any, names: TopicNames) -> str:
    """Give the broker, and partitions with the in-sync replicas that it asks for."""
    partitions = each_partition(body.topics, names, _wanted_isr)
    return f"broker {body.broker_id} {partitions or 'no partitions'}"


def _wanted_isr(partition: Any) -> str:
    isr = partition.new_isr or [each.broker_id for each in partition.new_isr_with_epochs]
    return f"ISR {ids_text(isr)} epoch {partition.leader_epoch}/{partition.partition_epoch}"


def alter_partition_response(body: Any, names: TopicNames) -> str:
    """List partitions with leader and in-sync replicas; leaves out partitions with an error."""
    return some(
        [
            f"{place_text(topic, each, names)} leader {each.leader_id} ISR {ids_text(each.isr)} "
            f"epoch {each.leader_epoch}/{each.partition_epoch}"
            for topic in body.topics
            for each in topic.partitions
            if not each.error_code
        ]
    )


def assign_replicas_request(body: Any, names: TopicNames) -> str:
    """Give the broker, and the log directory of each partition."""
    texts = [
        f"{partitions_text(each.topics, names, 'partitions') or 'no partitions'} in "
        f"{uuid_to_text(each.id)}"
        for each in body.directories
    ]
    return f"broker {body.broker_id} {some(texts) or 'no directories'}"


def assign_replicas_response(body: Any, names: TopicNames) -> str:
    """List the partitions that were assigned."""
    topics = [topic for each in body.directories for topic in each.topics]
    return partitions_text(topics, names, "partitions") or "no partitions"


def envelope_request(body: Any, _names: TopicNames) -> str:
    """Name the API of the request in the envelope."""
    data = body.request_data
    if len(data) < 4:
        return "no request inside"
    key = int.from_bytes(data[:2], "big", signed=True)
    version = int.from_bytes(data[2:4], "big", signed=True)
    return f"{messages.API_NAMES.get(key, f'API {key}')} v{version}, {bytes_text(len(data))}"
