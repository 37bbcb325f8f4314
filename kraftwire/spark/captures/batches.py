"""Record batches inside frames: their headers, and the records that Kafka itself wrote.

Kafka's own records are decoded without secrets, each distinct value once: a quorum sends each
record to every replica, and most records repeat the same few bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.scan import RecordsField, records_fields
from kraftwire.decode.body.secrets import redact
from kraftwire.errors import WireError
from kraftwire.records.json_form import decode_record
from kraftwire.records.reader import Batch, BatchReader
from kraftwire.records.record import Record
from kraftwire.spark.tables.columns import uuid_text

_KNOWN_MAX = 4096

_SNAPSHOT = "unalignedRecords"
_RECORDS = "records"

# The version of Fetch and of Produce that names topics by their ids.
_IDS_SINCE = 13

# The field next to the records that holds their partition has one of these names.
_PARTITION_NAMES = ("partition_index", "index", "partition")

# Whether records of a topic are wanted, by its name or id.
WantsTopic = Callable[[str | None, bytes | None], bool]


class OwnRecord(NamedTuple):
    """A decoded record. Units: `time_ms` milliseconds since the epoch. `data` is JSON."""

    offset: int
    epoch: int | None
    time_ms: int | None
    type: str
    version: int | None
    data: str


def own_records(batch: Batch, family: str) -> tuple[list[OwnRecord], bool]:
    """Return the records of a batch that can be decoded, and whether some could not."""
    rows, damage = batch.salvage()
    has_problems = damage is not None
    epoch = batch.partition_leader_epoch
    is_control = batch.is_control
    found = []
    for row in rows:
        try:
            fields = _decoded_fields(family, is_control, row.key, row.value)
        except WireError:
            has_problems = True
            continue
        if fields is not None:
            found.append(OwnRecord(row.offset, epoch, row.timestamp, *fields))
    return found, has_problems


@lru_cache(maxsize=_KNOWN_MAX)
def _decoded_fields(
    family: str, is_control: bool, key: bytes | None, value: bytes | None
) -> tuple[str, int | None, str] | None:
    """Return type, version and JSON of a record; None for a user's record. Raises: WireError."""
    decoded = decode_record(Record(0, 0, key, value), family, is_control=is_control)
    if decoded is None:
        return None
    data: Any = decoded.to_json()["data"]
    if isinstance(data, dict):
        redact(decoded.type, data)
    return decoded.type, decoded.version, json.dumps(data, separators=(",", ":"))


@dataclass(slots=True)
class FieldRecords:
    """The batches of one field.

    `own` are the records of a topic of Kafka's own, secrets hidden. With `is_cut`, bytes are
    left after the last whole batch; with `has_problems`, something in the field could not be read
    or a CRC is wrong.
    """

    where: RecordsField
    topic: str | None
    partition: int | None
    size: int
    batches: tuple[Batch, ...] = ()
    own: tuple[OwnRecord, ...] = ()
    is_cut: bool = False
    has_problems: bool = False

    @property
    def topic_id(self) -> str | None:
        """The id of the topic as text; None if unknown."""
        return uuid_text(self.where.topic_id)

    @property
    def source(self) -> str:
        """What the batches were taken from: the wire, or a snapshot that went over it."""
        return "snapshot" if self.where.name == _SNAPSHOT else "wire"


class _Layout(NamedTuple):
    """Where a message has the records of topics: attributes and fields of topics and partitions."""

    topics: str
    topics_field: str
    name: str
    partitions: str
    partitions_field: str


_LAYOUTS = {
    "FetchResponse": _Layout("responses", "responses", "topic", "partitions", "partitions"),
    "ProduceRequest": _Layout("topic_data", "topicData", "name", "partition_data", "partitionData"),
}


def fields_of(body: Any, version: int, wants: WantsTopic | None = None) -> list[RecordsField]:
    """Return the fields of a message with bytes of record batches; two messages need no search.

    `wants` chooses the topics of these two.
    """
    layout = _LAYOUTS.get(body.NAME)
    if layout is None:
        found = records_fields(body, version)
        return [each for each in found if getattr(each.holder, each.attribute)] if found else found
    fields = []
    has_id = version >= _IDS_SINCE
    for at, topic in enumerate(getattr(body, layout.topics)):
        known = (None, topic.topic_id) if has_id else (getattr(topic, layout.name), None)
        if wants is None or wants(*known):
            steps = layout.topics_field, at, layout.partitions_field
            fields += [
                RecordsField((*steps, i), _RECORDS, part, _RECORDS, *known)
                for i, part in enumerate(getattr(topic, layout.partitions))
                if part.records
            ]
    return fields


def is_plain(field: FieldRecords) -> bool:
    """Whether the field has nothing to report but its batches."""
    return not field.is_cut and not field.has_problems


class FrameBatch:
    """A batch in a field of a frame: a row of batches."""

    __slots__ = ("batch", "field", "frame", "is_valid")

    def __init__(self, frame: RawFrame, field: FieldRecords, batch: Batch, is_valid: bool) -> None:
        self.frame = frame
        self.field = field
        self.batch = batch
        self.is_valid = is_valid

    @property
    def max_timestamp(self) -> int | None:
        """The largest timestamp of its records in microseconds; None if unknown."""
        time: int | None = self.batch.max_timestamp
        return None if time is None or time < 0 else time * 1000


class FrameRecord:
    """A record of Kafka's own in a field of a frame: a row of metadata_records."""

    __slots__ = ("field", "frame", "record")

    def __init__(self, frame: RawFrame, field: FieldRecords, record: OwnRecord) -> None:
        self.frame = frame
        self.field = field
        self.record = record

    @property
    def time(self) -> int | None:
        """The timestamp in microseconds; None if unknown."""
        time_ms = self.record.time_ms
        return None if time_ms is None or time_ms < 0 else time_ms * 1000


def _partition_of(holder: Any) -> int | None:
    """Return the partition that the struct with the records names; None if it names none."""
    for name in _PARTITION_NAMES:
        if hasattr(holder, name):
            partition: int = getattr(holder, name)
            return partition
    return None


def read_records(
    where: RecordsField,
    data: bytes | memoryview,
    topic: str | None,
    family: str | None,
) -> FieldRecords:
    """Return the batches of a field, as far as they can be read."""
    partition = _partition_of(where.holder)
    reader = BatchReader(data)
    batches: list[Batch] = []
    has_problems = False
    while True:
        try:
            batches.extend(reader)
            break
        except WireError:
            has_problems = True
            reader.resume()
    own: list[OwnRecord] = []
    if family is not None:
        for batch in batches:
            records, is_damaged = own_records(batch, family)
            own += records
            has_problems = has_problems or is_damaged
    is_cut = bool(reader.remaining)
    return FieldRecords(
        where, topic, partition, len(data), tuple(batches), tuple(own), is_cut, has_problems
    )
