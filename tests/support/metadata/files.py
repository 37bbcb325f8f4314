"""Segments and snapshots of the metadata log, from records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraftwire.log.snapshots.writer import footer_batch, header_batch
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message

TIME_MS = 1_760_000_000_000
TOPIC, OTHER = (bytes([number]) * 16 for number in (1, 2))

# The log that ends with three records that do not fit those before them.
SOUND: list[Message] = [
    FeatureLevelRecord(name="metadata.version", feature_level=27),
    RegisterBrokerRecord(broker_id=3, broker_epoch=2),
    TopicRecord(name="orders", topic_id=TOPIC),
    PartitionRecord(partition_id=0, topic_id=TOPIC, replicas=[3], isr=[3], leader=3),
]
WRONG: list[Message] = [
    BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=99, fenced=-1),
    PartitionChangeRecord(partition_id=0, topic_id=OTHER, leader=3),
    PartitionChangeRecord(partition_id=4, topic_id=TOPIC, leader=3),
]


def values_of(records: Sequence[Message]) -> list[bytes]:
    """The values of records, in the newest version of each."""
    return [encode_metadata(each, each.VERSIONS.high) for each in records]


def batch_of(records: Sequence[Message], base_offset: int, *, epoch: int = 1) -> bytes:
    """A batch of metadata records."""
    header = BatchHeader(base_offset=base_offset, partition_leader_epoch=epoch)
    values = values_of(records)
    times = [TIME_MS + 500 * (base_offset + at) for at in range(len(values))]
    return build_columns(times, [None] * len(values), values, header=header)


def write_segment(folder: Path, records: Sequence[Message], base_offset: int = 0) -> Path:
    """Write a segment with a batch for each record; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batch_of([r], base_offset + at) for at, r in enumerate(records)))
    return path


def write_snapshot(folder: Path, records: Sequence[Message], offset: int, epoch: int = 1) -> Path:
    """Write a snapshot of the log below an offset; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{offset:020d}-{epoch:010d}.checkpoint"
    head = header_batch(epoch, TIME_MS, TIME_MS)
    at = RecordBatch(head).last_offset + 1
    body = batch_of(records, at, epoch=epoch) if records else b""
    foot = footer_batch(at + len(records), epoch, TIME_MS)
    path.write_bytes(head + body + foot)
    return path
