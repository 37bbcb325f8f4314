"""The input of stories: requests with their responses, and counts of their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.exchange import Exchange
from kraftwire.errors import WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_to_text


class ObservedExchange(Exchange):
    """A request, perhaps with its response, as stories see them: texts that are unknown are empty.

    Of what a broker sent in an envelope both are those inside. Units: times are seconds since the
    epoch.
    """

    @property
    def api(self) -> str:
        """Name of the API."""
        return self.first.api_name or ""

    @property
    def client_id(self) -> str:
        """The client id of the request."""
        return self.first.client_id or ""

    @property
    def request_body(self) -> Any:
        """The body of the request, None where it is not known."""
        return None if self.request is None else self.request.body

    @property
    def response_body(self) -> Any:
        """The body of the response, None where it is not known."""
        return None if self.response is None else self.response.body

    @property
    def request_time(self) -> float:
        """When the request was sent; of one that was not captured, when its response came."""
        return self.first.time

    @property
    def response_time(self) -> float:
        """When the response came; 0 where it has not."""
        return 0.0 if self.response is None else self.response.time

    @property
    def is_forwarded(self) -> bool:
        """Whether a broker sent the request in an envelope."""
        return self.first.depth > 0


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
