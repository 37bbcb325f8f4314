"""Facts of share groups: acknowledgements, and the state that the share coordinator keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.facts.words import (
    bytes_text,
    counted,
    named,
    partitions_text,
    place_text,
    some,
)

__all__ = [
    "acknowledge_request",
    "acknowledge_response",
    "fetch_request",
    "fetch_response",
    "state_request",
    "state_response",
]

_ACKNOWLEDGED = {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"}


def fetch_request(body: Any, names: TopicNames) -> str:
    """Give group, session and partitions, and the acknowledgements that the request brings."""
    text = f"group {named(body.group_id)} session epoch {body.share_session_epoch}"
    partitions = partitions_text(body.topics, names, "partitions")
    text = f"{text} {partitions}" if partitions else text
    acknowledged = some(list(_acknowledged(body.topics, names)))
    return f"{text}, acknowledges {acknowledged}" if acknowledged else text


def fetch_response(body: Any, _names: TopicNames) -> str:
    """Give the bytes of records, and how many records were acquired."""
    size = acquired = 0
    for topic in body.responses:
        for partition in topic.partitions:
            size += len(partition.records or b"")
            for each in partition.acquired_records:
                acquired += each.last_offset - each.first_offset + 1
    return f"{bytes_text(size)}, {acquired} acquired" if size or acquired else "no records"


def acknowledge_request(body: Any, names: TopicNames) -> str:
    """Give group and session, and each record's acknowledgement."""
    text = f"group {named(body.group_id)} session epoch {body.share_session_epoch}"
    return f"{text}, {some(list(_acknowledged(body.topics, names))) or 'no records'}"


def acknowledge_response(body: Any, names: TopicNames) -> str:
    """List the partitions in the response."""
    return partitions_text(body.responses, names, "partitions") or "no partitions"


def _acknowledged(topics: Iterable[Any], names: TopicNames) -> Iterator[str]:
    """List acknowledged offsets and their types, by partition."""
    for topic in topics:
        for partition in topic.partitions:
            place = place_text(topic, partition, names)
            for each in partition.acknowledgement_batches:
                # A single type stands for all records of the batch.
                kinds = sorted(set(each.acknowledge_types))
                said = "/".join(_ACKNOWLEDGED.get(kind, f"type {kind}") for kind in kinds)
                yield f"{place} {each.first_offset}-{each.last_offset} {said}".rstrip()


def state_request(body: Any, names: TopicNames) -> str:
    """Give group and partitions; for partitions with a state, its start and its batches."""
    return f"group {named(body.group_id)} {_states(body.topics, names) or 'no partitions'}"


def state_response(body: Any, names: TopicNames) -> str:
    """Give the state of each partition."""
    return _states(body.results, names) or "no partitions"


def _states(topics: Iterable[Any], names: TopicNames) -> str:
    return some(
        [
            f"{place_text(topic, partition, names)}{_state(partition)}"
            for topic in topics
            for partition in topic.partitions
        ]
    )


def _state(partition: Any) -> str:
    start: int | None = getattr(partition, "start_offset", None)
    if start is None or getattr(partition, "error_code", False):
        return ""
    text = f" @{start}" if start >= 0 else " no start"
    batches: Any = getattr(partition, "state_batches", ())
    if batches:
        count = counted(batches, "batches")
        text += f" {count} {batches[0].first_offset}-{batches[-1].last_offset}"
    epoch: Any = getattr(partition, "state_epoch", -1)
    return f"{text} epoch {epoch}" if epoch >= 0 else text
