"""Snapshots of metadata: written and read as files, compared by what they say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.control import ControlType, control_key, control_value
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import read_batches
from kraftwire.wire.message import Message

__all__ = ["meaning", "read_snapshot", "snapshot_id", "type_order", "write_snapshot"]

# Lists that Kafka keeps as sets or maps.
_SETS = ("endPoints", "features", "logDirs", "cordonedLogDirs", "entity")


def meaning(values: Iterable[bytes]) -> list[str]:
    """The records in an order of their own, a line of JSON each.

    Shape: what Kafka writes in any order is sorted; who took the last block of producer ids is
    left out, as Kafka leaves it out.
    """
    return sorted(json.dumps(_normal(value), sort_keys=True) for value in values)


def _normal(value: bytes) -> dict[str, Any]:
    record = decode_metadata(value).to_json()
    data = record["data"]
    for name in _SETS:
        if data.get(name):
            data[name] = sorted(data[name], key=json.dumps)
    if record["type"] == "ProducerIdsRecord":
        data["brokerId"] = data["brokerEpoch"] = -1
    return record


def type_order(values: Iterable[bytes]) -> list[str]:
    """The types of the records as they follow each other, topics and partitions as one."""
    types = (decode_metadata(value).type.replace("Partition", "Topic") for value in values)
    return [name for name, _ in groupby(types)]


def write_snapshot(
    folder: Path,
    end: OffsetAndEpoch,
    values: Sequence[bytes],
    control: Sequence[tuple[ControlType, Message]] = (),
    timestamp: int = 0,
) -> Path:
    """Write a snapshot file as R-SNAP-3 says; returns its path.

    Shape: `control` are the records that follow the header.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=timestamp)
    batches: list[list[tuple[bytes | None, bytes]]] = [
        [_control(ControlType.SNAPSHOT_HEADER, header), *(_control(*one) for one in control)],
        *([(None, value) for value in some] for some in _pieces(values)),
        [_control(ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))],
    ]
    data = b""
    offset = 0
    for number, batch in enumerate(batches):
        is_control = number in (0, len(batches) - 1)
        what = BatchHeader(
            base_offset=offset, partition_leader_epoch=end.epoch, is_control=is_control
        )
        keys, bodies = zip(*batch, strict=True)
        data += build_columns([timestamp] * len(batch), keys, bodies, header=what)
        offset += len(batch)
    path = folder / f"{end.offset:020d}-{end.epoch:010d}.checkpoint"
    path.write_bytes(data)
    return path


def read_snapshot(path: Path) -> list[bytes]:
    """The values of the metadata records in a snapshot file."""
    return [
        value
        for batch in read_batches(path.read_bytes())
        if not batch.is_control
        for record in batch.records()
        if (value := record.value) is not None
    ]


def snapshot_id(path: Path) -> OffsetAndEpoch:
    """Which snapshot a file is, by its name."""
    offset, _, epoch = path.name.removesuffix(".checkpoint").partition("-")
    return OffsetAndEpoch(int(offset), int(epoch))


def _control(kind: ControlType, message: Message) -> tuple[bytes, bytes]:
    return control_key(kind), control_value(message)


def _pieces(values: Sequence[bytes], count: int = 1024) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(values), count):
        yield values[start : start + count]
