"""Facts of what administrators do to partitions: reassignments, directories, deletions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.facts.words import named, partitions_text, some

__all__ = [
    "alter_reassignments_request",
    "alter_reassignments_response",
    "alter_replica_log_dirs_request",
    "alter_replica_log_dirs_response",
    "delete_records_request",
    "delete_records_response",
    "list_reassignments_request",
    "list_reassignments_response",
]

_NONE = "no partitions"


def delete_records_request(body: Any, _names: TopicNames) -> str:
    """List partitions, and the offsets before which records are deleted."""
    return _each(body.topics, _before)


def _before(partition: Any) -> str:
    offset = partition.offset
    return f"before {offset}" if offset >= 0 else "before the high watermark"


def delete_records_response(body: Any, _names: TopicNames) -> str:
    """List partitions with their low watermarks."""
    return _each(body.topics, _low_watermark)


def _low_watermark(partition: Any) -> str:
    return "" if partition.error_code else f"low watermark {partition.low_watermark}"


def alter_reassignments_request(body: Any, _names: TopicNames) -> str:
    """List partitions with their new replicas."""
    return _each(body.topics, _new_replicas)


def _new_replicas(partition: Any) -> str:
    return "cancel" if partition.replicas is None else f"to replicas {_ids(partition.replicas)}"


def alter_reassignments_response(body: Any, names: TopicNames) -> str:
    """Give the first partition in the response, and count the others."""
    return partitions_text(body.responses, names, "partitions") or _NONE


def list_reassignments_request(body: Any, names: TopicNames) -> str:
    """Give the partitions that the client asks about."""
    if body.topics is None:
        return "all topics"
    return partitions_text(body.topics, names, "partition_indexes") or _NONE


def list_reassignments_response(body: Any, _names: TopicNames) -> str:
    """List partitions with their replicas, those that are added and those that are removed."""
    return _each(body.topics, _ongoing)


def _ongoing(partition: Any) -> str:
    text = f"replicas {_ids(partition.replicas)}"
    text += f" adding {_ids(partition.adding_replicas)}" if partition.adding_replicas else ""
    return text + (
        f" removing {_ids(partition.removing_replicas)}" if partition.removing_replicas else ""
    )


def alter_replica_log_dirs_request(body: Any, _names: TopicNames) -> str:
    """List partitions with their new directories."""
    texts = [
        f"{topic.name}-{index} to {named(each.path)}"
        for each in body.dirs
        for topic in each.topics
        for index in topic.partitions
    ]
    return some(texts) or _NONE


def alter_replica_log_dirs_response(body: Any, _names: TopicNames) -> str:
    """List the partitions in the response."""
    texts = [
        f"{topic.topic_name}-{each.partition_index}"
        for topic in body.results
        for each in topic.partitions
    ]
    return some(texts) or _NONE


def _each(topics: Iterable[Any], words: Callable[[Any], str]) -> str:
    """List the partitions of topics, each with some words about it."""
    texts = [
        f"{topic.name}-{each.partition_index} {words(each)}".rstrip()
        for topic in topics
        for each in topic.partitions
    ]
    return some(texts) or _NONE


def _ids(replicas: Iterable[int]) -> str:
    return f"[{', '.join(map(str, replicas))}]"
