"""Rows of `batches` and `records`: the columns of Spark's own Kafka source, then ours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kraftwire.errors import WireError
from kraftwire.records.compression import CODEC_MASK, NAMES
from kraftwire.records.header import CONTROL, STAMPED
from kraftwire.records.reader import Batch
from kraftwire.spark.columns import Batches
from kraftwire.spark.logs.place import LogPlace
from kraftwire.spark.tables import TABLES

_BATCHES = TABLES["batches"].arrow
_CODECS = pa.array(NAMES)
_MILLISECONDS_MAX = (2**63 - 1) // 1000

_RECORDS = TABLES["records"].arrow


def constant(value: Any, kind: Any, count: int) -> Any:
    """Return an array that repeats one value, which may be None."""
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def timestamps(milliseconds: Any) -> Any:
    """Convert int64 milliseconds to Arrow timestamps; null where they do not fit in microseconds.
    """
    kind = pa.timestamp("us", tz="UTC")
    is_far = np.abs(milliseconds) > _MILLISECONDS_MAX
    if not is_far.any():
        return pa.array(milliseconds * 1000).cast(kind)
    near = np.where(is_far, 0, milliseconds)
    return pa.array(near * 1000, mask=is_far).cast(kind)


def batch_rows(place: LogPlace, batches: Batches, position: int) -> Any:
    """Return a row for each batch, all with correct CRCs; `position` is the buffer's place."""
    header, count = batches.header, len(batches)
    columns = {
        "position": batches.positions + position,
        "base_offset": header["base_offset"],
        "last_offset": batches.last_offsets,
        "leader_epoch": header["leader_epoch"],
        "count": header["count"],
        "size": batches.sizes.astype(np.int32),
        "codec": _CODECS.take(pa.array(header["attributes"] & CODEC_MASK)),
        "crc": header["crc"].astype(np.int64),
        "is_valid": np.ones(count, bool),
        "is_control": batches.is_control,
        "is_transactional": batches.is_transactional,
        "producer_id": header["producer_id"],
        "producer_epoch": header["producer_epoch"],
        "base_sequence": header["base_sequence"],
        "max_timestamp": timestamps(header["max_timestamp"]),
    }
    return _table(place, columns, count)


def batch_row(place: LogPlace, batch: Batch, position: int, *, is_valid: bool) -> Any:
    """Return the row of one batch of any magic; null stands for what a damaged old batch lacks."""
    base_offset, count = _beginning(batch)
    columns = {
        "position": [position],
        "base_offset": [base_offset],
        "last_offset": [batch.last_offset],
        "leader_epoch": [batch.partition_leader_epoch],
        "count": [count],
        "size": [batch.size],
        "codec": [batch.compression],
        "crc": [batch.crc],
        "is_valid": [is_valid],
        "is_control": [batch.is_control],
        "is_transactional": [batch.is_transactional],
        "producer_id": [batch.producer_id],
        "producer_epoch": [batch.producer_epoch],
        "base_sequence": [batch.base_sequence],
        "max_timestamp": timestamps(np.array([batch.max_timestamp], np.int64)),
    }
    return _table(place, columns, 1)


def _beginning(batch: Batch) -> tuple[int | None, int | None]:
    try:
        return batch.base_offset, batch.count
    except WireError:
        return None, None


def _table(place: LogPlace, columns: dict[str, Any], count: int) -> Any:
    same = {
        "file": place.file,
        "topic": place.topic,
        "topic_id": place.topic_id,
        "partition": place.partition,
        "source": place.source,
    }
    arrays = [
        constant(same[field.name], field.type, count)
        if field.name in same
        else pa.array(columns[field.name], field.type)
        for field in _BATCHES
    ]
    return pa.table(arrays, _BATCHES)


class BatchFacts(NamedTuple):
    """The columns that rows of records take from their batches, by batch index."""

    attributes: Any
    leader_epoch: Any
    producer_id: Any
    position: Any


def record_rows(
    place: LogPlace,
    table: Any,
    facts: BatchFacts,
    names: frozenset[str] | None = None,
    values: Any = None,
) -> Any:
    """Return rows of records by columns; `values` replace the records' own where secrets are
    hidden.

    `names` are the requested columns, None for all; the order is the table's.
    """
    made = _Columns(place, table, facts, values)
    fields = [field for field in _RECORDS if names is None or field.name in names]
    return pa.table([made.column(field.name) for field in fields], pa.schema(fields))


class _Columns:
    """Makes columns of the rows, one at a time."""

    def __init__(self, place: LogPlace, table: Any, facts: BatchFacts, values: Any) -> None:
        self._table = table
        self._facts = facts
        self._lane = np.asarray(table["batch"])
        self._values = values
        self._same = {
            "topic": (place.topic, pa.string()),
            "partition": (place.partition, pa.int32()),
            "file": (place.file, pa.string()),
        }

    def column(self, name: str) -> Any:
        """Return a column by its name."""
        if name in self._same:
            return constant(*self._same[name], len(self._lane))
        if name == "value" and self._values is not None:
            return self._values
        if name == "timestamp":
            return timestamps(np.asarray(self._table[name]))
        if name in ("timestampType", "is_control"):
            is_stamped = name == "timestampType"
            bit = STAMPED if is_stamped else CONTROL
            has = (self._facts.attributes & bit != 0)[self._lane]
            return pa.array(has.astype(np.int32) if is_stamped else has)
        if name in ("leader_epoch", "producer_id", "position"):
            kind = _RECORDS.field(name).type
            return pa.array(getattr(self._facts, name)[self._lane], kind)
        return self._table[name]
