"""The rows of `metadata_records` of a live quorum's log.

A live log has no file: `file` is the topic partition, or the name of the snapshot, and `position`
null, or the batch's place in the snapshot. A record that fits no schema is a row too, of type
``undecoded`` with the reason as its data: a stream must not lose records silently.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.client.metadata_log import Position, QuorumReader, SnapshotId
from kraftwire.errors import WireError
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.json_form import decode_record
from kraftwire.records.reader import Batch, read_batches
from kraftwire.records.record import Record
from kraftwire.spark.logs.metadata import json_text
from kraftwire.spark.logs.rows import timestamps
from kraftwire.spark.tables import TABLES
from kraftwire.wire.json_form import uuid_to_text

_SCHEMA = TABLES["metadata_records"].arrow
_ROWS_MAX = 10_000
_Row = tuple[int, int, int, str, int | None, str, int | None]


def log_rows(reader: QuorumReader, start: Position, end: Position) -> Iterator[Any]:
    """Yield tables of the records from `start` up to `end`."""
    rows: list[_Row] = []
    for _, batch in reader.batches(start, end):
        rows += [
            row
            for row in _batch_rows(batch, None)
            if start.next_offset <= row[0] < end.next_offset
        ]
        if len(rows) >= _ROWS_MAX:
            yield _table(rows, f"{METADATA_TOPIC}-0")
            rows = []
    if rows:
        yield _table(rows, f"{METADATA_TOPIC}-0")


def snapshot_rows(reader: QuorumReader, id: SnapshotId) -> Iterator[Any]:
    """Yield tables of the records of a snapshot."""
    data = reader.snapshot(id)
    for batch in read_batches(data):
        batch.ensure_valid()
        yield _table(list(_batch_rows(batch, batch.position)), id.file_name)


def _batch_rows(batch: Batch, position: int | None) -> Iterator[_Row]:
    for record in batch.iter_records():
        kind, version, data = _decoded_fields(record, is_control=batch.is_control)
        epoch = batch.partition_leader_epoch
        yield record.offset, epoch, record.timestamp, kind, version, data, position


def _decoded_fields(record: Record, *, is_control: bool) -> tuple[str, int | None, str]:
    try:
        decoded = decode_record(record, "metadata", is_control=is_control)
    except WireError as error:
        return "undecoded", None, json.dumps({"error": str(error)})
    assert decoded is not None
    return decoded.type, decoded.version, json_text(decoded)


def _table(rows: list[_Row], file: str) -> Any:
    offsets, epochs, times, kinds, versions, data, positions = (
        zip(*rows, strict=True) if rows else ((),) * 7
    )
    count = len(rows)
    columns = {
        "file": [file] * count,
        "position": positions,
        "topic": [METADATA_TOPIC] * count,
        "topic_id": [uuid_to_text(METADATA_TOPIC_ID)] * count,
        "partition": [0] * count,
        "offset": offsets,
        "epoch": epochs,
        "time": timestamps(np.array(times, np.int64)),
        "type": kinds,
        "version": versions,
        "data": data,
    }
    return pa.table([pa.array(columns[each.name], each.type) for each in _SCHEMA], _SCHEMA)
