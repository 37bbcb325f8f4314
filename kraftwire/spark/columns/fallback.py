"""Records as Arrow tables by the reader of `kraftwire.records`: of any batch, in bounded memory.

Used for all batches without the engine, and for those that the engine leaves to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire.records.batch import RecordBatch
from kraftwire.records.limits import RECORDS_CHUNK_COUNT
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record
from kraftwire.spark.columns.batches import Batches
from kraftwire.spark.columns.heap import LONG_BYTES, give_back
from kraftwire.spark.columns.result import BYTES_MAX, HEADERS, SCHEMA, Columns, Problem

__all__ = ["read_plainly", "read_with_reader"]


def read_plainly(batches: Batches, indexes: Any, done: int = 0) -> Iterator[Columns]:
    """Yield the records of the batches with these indexes, and their problems.

    The first `done` records of the first batch are skipped.
    """
    places = batches.positions[indexes].tolist()
    found = (RecordBatch(batches.buffer, place) for place in places)
    return read_with_reader(zip(indexes.tolist(), found, strict=True), done)


def read_with_reader(batches: Iterable[tuple[int, Batch]], done: int = 0) -> Iterator[Columns]:
    """Yield the records of batches of any magic, each with its index in the tables.

    As `read_plainly`. A table has a few thousand records.
    """
    tables = _Tables()
    for number, batch in batches:
        found = batch.iter_salvage()
        for rows in found.chunks():
            # Not after the last of them: then the bytes of the batch are released first.
            yield from tables.full()
            skipped = min(done, len(rows))
            done -= skipped
            tables.add(number, rows[skipped:])
            del rows
        yield from tables.full()
        if found.damage is not None:
            yield from tables.rest()
            yield Columns(SCHEMA.empty_table(), (Problem(number, found.damage),))
    yield from tables.rest()


class _Tables:
    """Collects records until they are worth a table."""

    def __init__(self) -> None:
        self._rows: list[Record] = []
        self._numbers: list[int] = []
        self._counts: list[int] = []
        self._bytes = 0

    def add(self, number: int, rows: list[Record]) -> None:
        """Add records of a batch."""
        self._numbers.append(number)
        self._counts.append(len(rows))
        self._bytes += sum([len(r[2] or b"") + len(r[3] or b"") + len(r[4]) for r in rows])
        self._rows += rows

    def full(self) -> Iterator[Columns]:
        """Return a table if there are enough records."""
        if len(self._rows) >= RECORDS_CHUNK_COUNT or self._bytes > BYTES_MAX:
            yield from self.rest()

    def rest(self) -> Iterator[Columns]:
        """Return a table of all records, if there are any; the records are released before."""
        if self._rows:
            tables = [self._table()]
            is_long = self._bytes >= LONG_BYTES
            self._rows, self._numbers, self._counts, self._bytes = [], [], [], 0
            if is_long:
                give_back()
            yield Columns(tables.pop(), ())
            if is_long:
                give_back()

    def _table(self) -> Any:
        offsets, times, keys, values, headers, sequences = zip(*self._rows, strict=True)
        numbers = np.repeat(np.array(self._numbers, np.int32), self._counts)
        cells = (numbers, offsets, times, sequences, keys, values)
        arrays = [pa.array(each, kind) for each, kind in zip(cells, SCHEMA.types, strict=False)]
        return pa.table([*arrays, _headers(headers)], SCHEMA)


def _headers(lists: tuple[Any, ...]) -> Any:
    """Build the lists of headers without more objects than the reader has made."""
    counts = list(map(len, lists))
    ends = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=ends[1:])
    pairs = pa.StructArray.from_arrays(
        [
            pa.array((name for name, _ in chain.from_iterable(lists)), pa.string()),
            pa.array((value for _, value in chain.from_iterable(lists)), pa.binary()),
        ],
        fields=list(HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(ends), pairs).cast(HEADERS)
