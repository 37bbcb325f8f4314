"""Phrases that many facts share: partitions, topics, counts and sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.wire.json_form import uuid_to_text

# Lists longer than this are cut.
MORE_THAN = 3


def topic_text(topic: Any, names: TopicNames) -> str:
    """Return the name of a topic that a message gives by name, by id or by both."""
    name = getattr(topic, "name", None) or getattr(topic, "topic", None)
    if name:
        return str(name)
    id = getattr(topic, "topic_id", None)
    if id is None:
        return "?"
    return id_text(id, names)


def id_text(topic_id: bytes, names: TopicNames) -> str:
    """Return the name of the topic with an id, or the id if the name is unknown."""
    return names.name(None, topic_id) or _uuid_text(topic_id)


# The ids of a capture repeat often.
_uuid_text = lru_cache(maxsize=1000)(uuid_to_text)


def place_text(topic: Any, partition: Any, names: TopicNames) -> str:
    """Return a topic and one of its partitions, such as `orders-3`."""
    return f"{topic_text(topic, names)}-{_index(partition)}"


def counted(values: Sequence[object], plural: str) -> str:
    """Return a count and its noun; `plural` is the plural of the noun."""
    if len(values) != 1:
        return f"{len(values) or 'no'} {plural}"
    if plural.endswith("ies"):
        return f"1 {plural[:-3]}y"
    if plural.endswith("ches"):
        return f"1 {plural[:-2]}"
    return f"1 {plural.removesuffix('s')}"


def some(values: Sequence[object]) -> str:
    """Return the first few values, and how many more there are."""
    shown = ", ".join([named(str(each)) for each in values[:MORE_THAN]])
    return shown if len(values) <= MORE_THAN else f"{shown} +{len(values) - MORE_THAN}"


def named(name: str | None) -> str:
    """Return a name in a form that is visible among words even if it is empty."""
    return name or '""'


def topics_text(topics: Sequence[Any], names: TopicNames) -> str:
    """Return the names of the first few topics, and how many more there are."""
    if len(topics) == 1:
        return topic_text(topics[0], names)
    shown = ", ".join([topic_text(each, names) for each in topics[:MORE_THAN]])
    return shown if len(topics) <= MORE_THAN else f"{shown} +{len(topics) - MORE_THAN} topics"


def partitions_text(topics: Sequence[Any], names: TopicNames, field: str) -> str:
    """Return the first partition, and how many more there are.

    `field` is the attribute of a topic that lists its partitions.
    """
    if not topics:
        return ""
    count = 0
    for each in topics:
        count += len(getattr(each, field))
    first = topics[0]
    name = topic_text(first, names)
    inside = getattr(first, field)
    if not inside:
        return name
    one = inside[0]
    if one.__class__ is not int:
        one = _index(one)
    return f"{name}-{one}" if count == 1 else f"{name}-{one} +{count - 1}"


def each_partition(
    topics: Sequence[Any], names: TopicNames, words: Callable[[Any], str]
) -> str:
    """List the first few partitions, each with some words about it; empty if there are none."""
    return some(
        [
            f"{place_text(topic, partition, names)} {words(partition)}".rstrip()
            for topic in topics
            for partition in topic.partitions
        ]
    )


def ids_text(ids: Sequence[int]) -> str:
    """Return ids of nodes in brackets."""
    return f"[{', '.join(map(str, ids))}]"


def _index(partition: Any) -> int:
    for attribute in ("partition_index", "partition", "index"):
        value = getattr(partition, attribute, None)
        if value is not None:
            return int(value)
    return -1


def bytes_text(size: int) -> str:
    """Return a number of bytes in short form."""
    if size < 10_000:
        return f"{size} B"
    if size < 10_000_000:
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"
