"""Converts batches to Arrow arrays of their records.

By the engine if there is one. The reader of `kraftwire.records` reads damaged and unusual batches,
and all of them without the engine; it explains what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire import engine
from kraftwire.errors import UsageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import Batch, read_batches
from kraftwire.records.salvage import bare
from kraftwire.spark.columns.batches import Batches, cut
from kraftwire.spark.columns.fallback import read_plainly, read_with_reader
from kraftwire.spark.columns.native import read_natively
from kraftwire.spark.columns.result import SCHEMA, Columns, Problem

__all__ = ["read_batch", "read_columns", "read_cut"]

# Offsets into Arrow's binary arrays have 32 bits.
_BUFFER_BYTES_MAX = 2**31 - 64


def read_cut(batches: Batches, wanted: Any = None) -> Iterator[Columns]:
    """Yield the records of batches, in tables of bounded size.

    `wanted` is a mask of the batches to read; not even the CRC of the others is checked. Raises:
    UsageError for a buffer of 2 GiB or more.
    """
    if len(batches.buffer) > _BUFFER_BYTES_MAX:
        raise UsageError("a buffer of 2 GiB or more; give records in smaller chunks")
    chosen = np.ones(len(batches), bool) if wanted is None else np.array(wanted, bool)
    is_valid = batches.is_valid if chosen.all() else _valid_among(batches, chosen)
    problems = [
        Problem(index, _crc_error(batches, index))
        for index in np.flatnonzero(chosen & ~is_valid).tolist()
    ]
    if problems:
        yield Columns(SCHEMA.empty_table(), tuple(problems))
    indexes = np.flatnonzero(chosen & is_valid)
    if len(indexes):
        read = read_plainly if engine.core is None else read_natively
        yield from read(batches, indexes)


def read_batch(batch: Batch, *, check_crc: bool = True) -> Iterator[Columns]:
    """Yield the records of one batch of any magic, by the reader; its index is 0."""
    if check_crc:
        try:
            batch.ensure_valid()
        except WireError as error:
            yield Columns(SCHEMA.empty_table(), (Problem(0, bare(error)),))
            return
    yield from read_with_reader([(0, batch)])


def read_columns(buffer: bytes) -> Iterator[tuple[Any, tuple[WireError, ...]]]:
    """Yield the records of a whole buffer, cut into batches as by `read_batches`.

    Tables have `SCHEMA` and come with the problems of their batches; `batch` counts from the
    buffer's first batch. Raises: WireError where a header is impossible.
    """
    position, before = 0, 0
    while True:
        batches = cut(buffer, position)
        for columns in read_cut(batches):
            yield _numbered(columns, before)
            del columns
        before += len(batches)
        batch = next(read_batches(buffer, batches.end), None)
        if batch is None:
            return
        for columns in read_batch(batch):
            yield _numbered(columns, before)
        before += 1
        position = batch.end


def _numbered(columns: Columns, before: int) -> tuple[Any, tuple[WireError, ...]]:
    table = columns.table
    if before and len(table):
        numbers = pa.array(np.asarray(table["batch"]) + np.int32(before))
        table = table.set_column(0, SCHEMA.field(0), numbers)
    return table, tuple(problem.error for problem in columns.problems)


def _valid_among(batches: Batches, chosen: Any) -> Any:
    """Return whether the CRC is correct, for chosen batches only."""
    is_valid = np.zeros(len(batches), bool)
    is_valid[chosen] = batches.chosen(chosen).is_valid
    return is_valid


def _crc_error(batches: Batches, index: int) -> WireError:
    try:
        RecordBatch(batches.buffer, int(batches.positions[index])).ensure_valid()
    except WireError as error:
        return bare(error)
    raise AssertionError("the CRC is right after all")
