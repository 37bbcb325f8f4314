"""The input of stories: requests with their responses, and counts of their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.errors import WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_to_text


@dataclass(slots=True)
class ObservedExchange:
    """A request and its response.

    `request` is None where the capture lacks it, `response` until it is known. A request that a
    broker sent in an envelope `is_forwarded`, and all values are its own. Units: `request_time` and
    `response_time` are seconds since the epoch.
    """

    connection: str
    client_id: str
    api: str
    request_time: float
    request: Any = None
    response_time: float = 0.0
    response: Any = None
    is_forwarded: bool = False

    @property
    def client(self) -> str:
        """Host and port of the client."""
        return self.connection.rpartition("-")[0]

    @property
    def host(self) -> str:
        """Host of the client."""
        return self.client.rpartition(":")[0]


@dataclass(slots=True)
class PartitionRecords:
    """Number and size of the records of a partition in a body. Units: `size` bytes."""

    topic: str
    partition: int
    records: int = 0
    size: int = 0
    batches: int = 0
    compression: Counter[str] = field(default_factory=Counter)


def produced_records(body: Any, names: TopicNames) -> Iterator[PartitionRecords]:
    """Yield the records of a Produce request by partition."""
    for topic in body.topic_data:
        name = topic_name(topic.name, topic.topic_id, names)
        for each in topic.partition_data:
            yield count_records(name, each.index, each.records)


def count_records(
    topic: str, partition: int, records: bytes | memoryview | None
) -> PartitionRecords:
    """Count the records in a field, up to the first batch that is cut off or damaged."""
    found = PartitionRecords(topic, partition)
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
