"""Batches that only the reader of `kraftwire.records` can judge, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.records.batch import RecordBatch
from kraftwire.records.limits import RECORDS_CHUNK_COUNT
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record
from kraftwire.spark.columns.arrays import HEADERS
from kraftwire.spark.columns.batches import Batches
from kraftwire.spark.columns.result import BYTES_MAX, SCHEMA, Columns, Problem

__all__ = ["read_odd", "read_slowly"]


def read_odd(batches: Batches, number: int, done: int = 0) -> Iterator[Columns]:
    """Yield the records of a batch, after the first `done`, and its problem; see `read_slowly`."""
    return read_slowly(RecordBatch(batches.buffer, int(batches.positions[number])), number, done)


def read_slowly(batch: Batch, number: int, done: int = 0) -> Iterator[Columns]:
    """Yield the records of a batch of any magic, and its problem.

    `number` is the batch's index in the tables; the first `done` of its records are skipped. A
    table has a few thousand records.
    """
    found = batch.iter_salvage()
    records = islice(found, done, None)
    while tables := [_table(rows, number) for rows in _some(records)]:
        yield Columns(tables.pop(), ())
    if found.damage is not None:
        yield Columns(SCHEMA.empty_table(), (Problem(number, found.damage),))


def _some(records: Iterator[Record]) -> Iterator[list[Record]]:
    """Return the next records, fewer where they are long; nothing after the last."""
    rows: list[Record] = []
    size = 0
    for record in islice(records, RECORDS_CHUNK_COUNT):
        rows.append(record)
        size += len(record.key or b"") + len(record.value or b"") + len(record.headers)
        if size > BYTES_MAX:
            break
    if rows:
        yield rows


def _table(rows: list[Record], number: int) -> Any:
    columns = (
        np.full(len(rows), number, np.int32),
        [row.offset for row in rows],
        [row.timestamp for row in rows],
        [row.sequence for row in rows],
        [row.key for row in rows],
        [row.value for row in rows],
    )
    kinds = SCHEMA.types[:-1]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table([*arrays, _headers(rows)], SCHEMA)


def _headers(rows: list[Record]) -> Any:
    """Build the lists of headers without more objects than the reader has made."""
    ends = np.cumsum([0, *(len(row.headers) for row in rows)], dtype=np.int32)
    pairs = pa.StructArray.from_arrays(
        [
            pa.array((name for row in rows for name, _ in row.headers), pa.string()),
            pa.array((value for row in rows for _, value in row.headers), pa.binary()),
        ],
        fields=list(HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(ends), pairs).cast(HEADERS)
