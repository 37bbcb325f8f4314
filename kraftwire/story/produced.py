"""The records in a body, counted by the headers of their batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.errors import WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_to_text

__all__ = ["Carried", "carried", "produced_in", "topic_name"]


@dataclass(slots=True)
class Carried:
    """Number and size of the records of a partition in a body. Units: `size` bytes."""

    topic: str
    partition: int
    records: int = 0
    size: int = 0
    batches: int = 0
    compression: Counter[str] = field(default_factory=Counter)


def produced_in(body: Any, names: TopicNames) -> Iterator[Carried]:
    """Yield the records of a Produce request by partition."""
    for topic in body.topic_data:
        name = topic_name(topic.name, topic.topic_id, names)
        for each in topic.partition_data:
            yield carried(name, each.index, each.records)


def carried(topic: str, partition: int, records: bytes | memoryview | None) -> Carried:
    """Count the records in a field, up to the first batch that is cut off or damaged."""
    found = Carried(topic, partition)
    try:
        for batch in read_batches(records or b""):
            is_current = isinstance(batch, RecordBatch)
            found.records += batch.last_offset - batch.base_offset + 1 if is_current else 1
            found.size += batch.size
            found.batches += 1
            found.compression[batch.compression] += 1
    except WireError:
        pass
    return found


def topic_name(name: str | None, topic_id: bytes | None, names: TopicNames) -> str:
    """Return the name of a topic, or its id where the name is unknown."""
    known = names.name(name, topic_id)
    return known or (uuid_to_text(topic_id) if topic_id else "")
