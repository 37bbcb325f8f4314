"""The input of stories: requests with their responses, taken out of envelopes, records counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kraftwire.decode.body.bodies import decode_payload
from kraftwire.decode.body.context import TopicNames
from kraftwire.errors import WireError
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message


@dataclass(slots=True)
class ObservedExchange:
    """A request and its response.

    `request` is None where the capture lacks it, `response` until it is known. For a request in an
    envelope, `inner_api` is its API, and all other values are its own too. Units: `request_time`
    and `response_time` are seconds since the epoch.
    """

    connection: str
    client_id: str
    api: str
    request_time: float
    request: Any = None
    response_time: float = 0.0
    response: Any = None
    inner_api: Api | None = None

    @property
    def client(self) -> str:
        """Host and port of the client."""
        return self.connection.rpartition("-")[0]

    @property
    def host(self) -> str:
        """Host of the client."""
        return self.client.rpartition(":")[0]


# API key and version.
Api = tuple[int, int]


class InnerRequest(NamedTuple):
    """The request in an envelope; its client is the one that the broker has it from."""

    body: Message
    api: Api
    client_id: str | None


def request_inside(envelope: EnvelopeRequest, keys: Container[int]) -> InnerRequest | None:
    """Return the request in an envelope; None if it is damaged or of another API than `keys`."""
    data = envelope.request_data
    if int.from_bytes(data[:2], "big", signed=True) not in keys:
        return None
    found = decode_payload(data, is_request=True)
    header = found.header
    if found.body is None or not isinstance(header, RequestHeader):
        return None
    api = header.request_api_key, header.request_api_version
    return InnerRequest(found.body, api, header.client_id)


def response_inside(envelope: EnvelopeResponse, api: Api) -> Message | None:
    """Return the response in an envelope, or None if it is missing or damaged."""
    if envelope.response_data is None:
        return None
    return decode_payload(envelope.response_data, is_request=False, api=api).body


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
