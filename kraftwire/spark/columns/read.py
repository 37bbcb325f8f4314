"""Batches to Arrow arrays of their records.

The columns are made for all batches at once; where a batch is damaged or unusual, the reader of
`kraftwire.records` reads it and says what is wrong, and the others are not concerned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.errors import UsageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import Batch, read_batches
from kraftwire.spark.columns.arrays import HEADERS
from kraftwire.spark.columns.batches import Batches, cut
from kraftwire.spark.columns.lanes import lanes_of
from kraftwire.spark.columns.lockstep import read_lanes

__all__ = ["SCHEMA", "Columns", "Problem", "read_batch", "read_columns", "read_cut"]

SCHEMA = pa.schema(
    [
        ("batch", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("sequence", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)

# Offsets into Arrow's binary arrays have 32 bits.
_BUFFER_BYTES_MAX = 2**31 - 64


@dataclass(frozen=True)
class Problem:
    """Why a batch has no records in the columns, or not all; `batch` is its index."""

    batch: int
    error: WireError


@dataclass(frozen=True)
class Columns:
    """Records of some batches, in their order.

    Shape: the columns of `table` are those of `SCHEMA`: `batch` is the index of the record's batch
    among those that were given, `timestamp` is in milliseconds, `sequence` -1 without a producer.
    A batch with a wrong CRC has no records here, and a damaged one those before the damage.
    """

    table: Any
    problems: tuple[Problem, ...]


def read_cut(batches: Batches, wanted: Any = None) -> Iterator[Columns]:
    """The records of batches, in tables whose data stays well under 2 GiB.

    Shape: `wanted` is a mask of the batches whose records are asked for; of the others not even
    the CRC is looked at. Raises: UsageError for a buffer of 2 GiB or more.
    """
    if len(batches.buffer) > _BUFFER_BYTES_MAX:
        raise UsageError("a buffer of 2 GiB or more; give records in smaller chunks")
    chosen = np.ones(len(batches), bool) if wanted is None else np.array(wanted, bool)
    is_valid = batches.is_valid if chosen.all() else _valid_among(batches, chosen)
    problems = [
        Problem(lane, _crc_error(batches, lane))
        for lane in np.flatnonzero(chosen & ~is_valid).tolist()
    ]
    indexes = np.flatnonzero(chosen & is_valid)
    for group in lanes_of(batches, indexes):
        parts, odd = [], []
        for lanes in group:
            tables, judged = read_lanes(lanes)
            parts += tables
            odd += judged
        for lane in sorted(odd):
            batch = RecordBatch(batches.buffer, int(batches.positions[lane]))
            part, problem = _by_reader(batch, lane)
            parts.append(part)
            problems += problem
        yield Columns(_in_order(parts), tuple(problems))
        problems = []
    if problems:
        yield Columns(SCHEMA.empty_table(), tuple(problems))


def read_batch(batch: Batch, *, check_crc: bool = True) -> Columns:
    """The records of one batch of any magic, by the reader; its index is 0."""
    if check_crc:
        try:
            batch.ensure_valid()
        except WireError as error:
            return Columns(SCHEMA.empty_table(), (Problem(0, error),))
    table, problems = _by_reader(batch, 0)
    return Columns(table, tuple(problems))


def read_columns(buffer: bytes) -> Iterator[tuple[Any, tuple[WireError, ...]]]:
    """The records of a whole buffer, as `read_batches` finds its batches.

    Shape: tables of `SCHEMA`, each with what is wrong with its batches; `batch` counts from the
    buffer's first batch. Raises: WireError where a header is impossible.
    """
    position, before = 0, 0
    while True:
        batches = cut(buffer, position)
        for columns in read_cut(batches):
            yield _numbered(columns, before)
        before += len(batches)
        batch = next(read_batches(buffer, batches.end), None)
        if batch is None:
            return
        yield _numbered(read_batch(batch), before)
        before += 1
        position = batch.end


def _numbered(columns: Columns, before: int) -> tuple[Any, tuple[WireError, ...]]:
    table = columns.table
    if before and len(table):
        numbers = pa.array(np.asarray(table["batch"]) + np.int32(before))
        table = table.set_column(0, SCHEMA.field(0), numbers)
    return table, tuple(problem.error for problem in columns.problems)


def _valid_among(batches: Batches, chosen: Any) -> Any:
    """Whether the CRC is right, for chosen batches only."""
    is_valid = np.zeros(len(batches), bool)
    is_valid[chosen] = batches.chosen(chosen).is_valid
    return is_valid


def _crc_error(batches: Batches, lane: int) -> WireError:
    try:
        RecordBatch(batches.buffer, int(batches.positions[lane])).ensure_valid()
    except WireError as error:
        return error
    raise AssertionError("the CRC is right after all")


def _by_reader(batch: Batch, lane: int) -> tuple[Any, list[Problem]]:
    rows, error = batch.salvage()
    headers = [
        [{"key": name, "value": value} for name, value in row.headers] for row in rows
    ]
    columns = (
        np.full(len(rows), lane, np.int32),
        [row.offset for row in rows],
        [row.timestamp for row in rows],
        [row.sequence for row in rows],
        [row.key for row in rows],
        [row.value for row in rows],
        headers,
    )
    arrays = [
        pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)
    ]
    return pa.table(arrays, SCHEMA), [] if error is None else [Problem(lane, error)]


def _in_order(parts: list[Any]) -> Any:
    """One table of parts, by batch."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else SCHEMA.empty_table()
    table = pa.concat_tables(parts)
    order = np.argsort(np.asarray(table["batch"]), kind="stable")
    return table.take(pa.array(order)).combine_chunks()
