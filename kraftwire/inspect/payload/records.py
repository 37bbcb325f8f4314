"""Extracts records from frames and files, with topic, partition and offset.

Owns the search for these three: a Produce request, for example, lacks offsets, which its response
brings.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.records import FieldBatches
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.decode.files.kinds import partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.protocol.error_codes import error_name

__all__ = ["PlacedRecord", "TopicTest", "records_of_exchange", "records_of_line"]

# Returns whether the records of a topic and partition are wanted; either is None where unknown.
TopicTest = Callable[[str | None, int | None], bool]

_PRODUCE = "Produce"


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with its place and the exchange that it was in.

    `offset` is None where the capture does not show it. `key`, `value` and the values of `headers`
    are bytes, None for null, or the word that stands for a secret. `decoded` is the JSON form of a
    record that Kafka wrote itself. `api` and `error` are those of the exchange that carried it;
    both are empty for files. Units: `timestamp` in milliseconds since the epoch.
    """

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    key: bytes | str | None
    value: bytes | str | None
    headers: tuple[tuple[str, bytes | str | None], ...]
    decoded: dict[str, Any] | None = None
    api: str = ""
    error: str = ""
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """What the records of a field have in common; `base` is the offset of the first record."""

    topic: str | None
    partition: int | None
    api: str = ""
    base: int | None = 0
    error: str = ""


def records_of_exchange(
    request: DecodedFrame | None, response: DecodedFrame | None, is_wanted: TopicTest
) -> Iterator[PlacedRecord]:
    """Yield the records of a request and its response, either of which may be missing."""
    for decoded in (request, response):
        if decoded is None or decoded.is_token:
            continue
        for field in decoded.batches:
            place = _place(decoded, field, response)
            if is_wanted(place.topic, place.partition):
                yield from _records(field.batches or (), place)


def records_of_line(line: FileLine, is_wanted: TopicTest) -> Iterator[PlacedRecord]:
    """Yield the records of a batch of a file; none for other lines."""
    if line.batch is None:
        return
    found = partition_of(Path(line.json["file"]))
    topic, partition = (found.topic, found.index) if found else (None, None)
    if is_wanted(topic, partition):
        yield from _records([line.json], _Place(topic, partition))


def _place(decoded: DecodedFrame, field: FieldBatches, response: DecodedFrame | None) -> _Place:
    holder = field.where.holder
    partition = getattr(holder, "partition_index", getattr(holder, "index", None))
    api = decoded.api_name or ""
    if api != _PRODUCE:
        return _Place(field.topic, partition, api)
    result = _partition_response(field, partition, response)
    if result is None:
        return _Place(field.topic, partition, api, None)
    base = result.base_offset if result.base_offset >= 0 and not result.error_code else None
    error = error_name(result.error_code) if result.error_code else ""
    return _Place(field.topic, partition, api, base, error)


def _partition_response(
    field: FieldBatches, partition: int | None, response: DecodedFrame | None
) -> Any:
    """Return the part of a Produce response about a partition; None if there is none."""
    body: Any = None if response is None else response.body
    if body is None:
        return None
    for topic in body.responses:
        if field.where.topic_id is not None:
            is_same = topic.topic_id == field.where.topic_id
        else:
            is_same = topic.name == field.where.topic
        for each in topic.partition_responses if is_same else ():
            if each.index == partition:
                return each
    return None


def _records(batches: Any, place: _Place) -> Iterator[PlacedRecord]:
    """Yield the records of batches in their JSON form, in which secrets are hidden."""
    base = place.base
    for batch in batches:
        count = 0
        for count, record in enumerate(batch.get("records") or (), 1):
            offset = record["offset"]
            if place.api == _PRODUCE:
                offset = None if base is None else base + count - 1
            yield PlacedRecord(
                place.topic, place.partition, offset, record["timestamp"],
                _bytes(record["key"]), _bytes(record["value"]),
                tuple((each["key"], _bytes(each["value"])) for each in record["headers"]),
                record.get("decoded"), place.api, place.error, batch["isControl"],
            )
        base = None if base is None else base + count


def _bytes(value: str | None) -> bytes | str | None:
    return value if value is None or value == REDACTED else b64decode(value)
