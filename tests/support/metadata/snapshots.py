"""Snapshots of metadata: written and read as files, compared by content."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from kraftwire.log.files import LocalFiles
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.records.control import ControlType
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import read_batches
from kraftwire.wire.message import Message

# Lists that Kafka keeps as sets or maps.
_SETS = ("endPoints", "features", "logDirs", "cordonedLogDirs", "entity")


def metadata(values: Iterable[bytes]) -> list[str]:
    """The records in a canonical order, a line of JSON each.

    What Kafka writes in any order is sorted; the owner of the last block of producer ids is
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
    """The types of the records in order, topics and partitions as one."""
    types = (decode_metadata(value).type.replace("Partition", "Topic") for value in values)
    return [name for name, _ in groupby(types)]


def write_snapshot(
    folder: Path,
    end: OffsetAndEpoch,
    values: Sequence[bytes],
    control: Sequence[tuple[ControlType, Message]] = (),
    timestamp: int = 0,
) -> None:
    """Write a snapshot as a node does. `control` are the records that follow the header."""
    store = SnapshotStore(LocalFiles(), str(folder))
    writer = store.writer(end, tuple(control), timestamp, timestamp)
    writer.append(values)
    writer.freeze()


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
    """The id of a snapshot file, from its name."""
    offset, _, epoch = path.name.removesuffix(".checkpoint").partition("-")
    return OffsetAndEpoch(int(offset), int(epoch))
