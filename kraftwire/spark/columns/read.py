"""Converts batches to Arrow arrays of their records: by the engine in C if there is one.

The reader of `kraftwire.records` reads damaged and unusual batches, and all of them without the
engine; it explains what is wrong, and its memory is bounded. After very long batches memory is
returned to the system: allocators keep freed memory for reuse, which makes ordinary batches fast,
but after one of many megabytes doubles the memory of the process.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire import engine
from kraftwire.errors import UsageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.limits import RECORDS_CHUNK_COUNT
from kraftwire.records.reader import Batch, read_batches
from kraftwire.records.record import Record
from kraftwire.records.salvage import bare
from kraftwire.spark.columns.batches import Batches, cut, unpacked

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

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

# Rows, and bytes of records, in one table, about: a record of seven bytes takes 40 in the columns
# and well over a hundred in the rows that Spark receives.
ROWS_MAX = 16 * 1024
BYTES_MAX = 4 * 1024 * 1024

# The memory that an allocator keeps after shorter ones does not matter.
LONG_BYTES = 4 * 1024 * 1024

# Offsets into Arrow's binary arrays have 32 bits.
_BUFFER_BYTES_MAX = 2**31 - 64


@dataclass(frozen=True)
class BatchProblem:
    """Why the columns lack records of a batch; `batch` is its index."""

    batch: int
    error: WireError


@dataclass(frozen=True)
class Columns:
    """Records of some batches, in order.

    The columns of `table` are those of `SCHEMA`: `batch` is the index of the record's batch
    among those that were given, `timestamp` is in milliseconds, `sequence` -1 without a producer.
    A batch with a wrong CRC has no records here; a damaged one has those before the damage.
    """

    table: Any
    problems: tuple[BatchProblem, ...]


def read_in_python(batches: Batches, indexes: Any, done: int = 0) -> Iterator[Columns]:
    """Yield the records of the batches with these indexes, and their problems.

    The first `done` records of the first batch are skipped.
    """
    places = batches.positions[indexes].tolist()
    found = (RecordBatch(batches.buffer, place) for place in places)
    return read_with_reader(zip(indexes.tolist(), found, strict=True), done)


def read_with_reader(batches: Iterable[tuple[int, Batch]], done: int = 0) -> Iterator[Columns]:
    """Yield the records of batches of any magic, each with its index in the tables.

    As `read_in_python`. A table has a few thousand records.
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
            yield Columns(SCHEMA.empty_table(), (BatchProblem(number, found.damage),))
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
                release_memory()
            yield Columns(tables.pop(), ())
            if is_long:
                release_memory()

    def _table(self) -> Any:
        offsets, times, keys, values, headers, sequences = zip(*self._rows, strict=True)
        numbers = np.repeat(np.array(self._numbers, np.int32), self._counts)
        cells = (numbers, offsets, times, sequences, keys, values)
        arrays = [pa.array(each, kind) for each, kind in zip(cells, SCHEMA.types, strict=False)]
        return pa.table([*arrays, _header_lists(headers)], SCHEMA)


def _header_lists(lists: tuple[Any, ...]) -> Any:
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


def release_memory() -> None:
    """Release unused memory of the C library (glibc only) and Arrow."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True)
class _Group:
    """Consecutive batches.

    For each batch: its position in the buffer, its index, and its decompressed records; None if
    they are in the buffer, or if only the reader can say why there are none.
    """

    positions: Any
    numbers: Any
    sections: list[bytes | None]
    count: int


def read_natively(batches: Batches, indexes: Any) -> Iterator[Columns]:
    """Yield the records of the batches with these indexes, by the engine, which must be present."""
    for group in _groups(batches, indexes):
        yield from _read_group(batches, group)
        # Its bytes are released before those of the next one are read.
        del group


def _read_group(batches: Batches, group: _Group) -> Iterator[Columns]:
    place, count = (0, 0, 0), len(group.sections)
    while place[0] < count:
        place, needs_fallback, found = _read_some(batches, group, place)
        if place[0] == count:
            # They are no longer needed, and the caller may need the memory.
            is_long = any(section and len(section) >= LONG_BYTES for section in group.sections)
            group.sections.clear()
            if is_long:
                release_memory()
        while found:
            yield found.pop()
        if needs_fallback:
            at, done, _ = place
            yield from read_in_python(batches, group.numbers[at : at + 1], done)
            place = (at + 1, 0, 0)


def _read_some(
    batches: Batches, group: _Group, place: tuple[int, int, int]
) -> tuple[tuple[int, int, int], bool, list[Columns]]:
    """Return the end of what was read from a place on, whether the fallback has to read the next
    batch, and a table of the records, or none.
    """
    rows_max = min(ROWS_MAX, max(1, group.count))
    place, needs_fallback, rows, columns = engine.core.read_columns(
        batches.buffer, group.positions, group.numbers, group.sections, place, rows_max, BYTES_MAX
    )
    return place, needs_fallback, [Columns(_table(rows, columns), ())] if rows else []


def _groups(batches: Batches, indexes: Any) -> Iterator[_Group]:
    """Yield the batches in groups, each with a bounded number of decompressed bytes."""
    sections: list[bytes | None] = [None] * len(indexes)
    begin = size = 0
    is_long = False
    for at in np.flatnonzero(batches.codecs[indexes]).tolist():
        section = sections[at] = unpacked(batches, int(indexes[at]))
        if section is not None:
            size += len(section)
            is_long = len(section) >= LONG_BYTES
        del section
        if size >= BYTES_MAX:
            group = [_group(batches, indexes, sections, begin, at + 1)]
            sections[begin : at + 1] = [None] * (at + 1 - begin)
            yield group.pop()
            begin, size = at + 1, 0
            if is_long:
                release_memory()
    yield _group(batches, indexes, sections, begin, len(indexes))


def _group(
    batches: Batches, indexes: Any, sections: list[bytes | None], begin: int, end: int
) -> _Group:
    chosen = indexes[begin:end]
    return _Group(
        batches.positions[chosen],
        chosen.astype(np.int32),
        sections[begin:end],
        int(np.maximum(batches.header["count"][chosen], 0).sum(dtype=np.int64)),
    )


def _table(rows: int, columns: tuple[Any, ...]) -> Any:
    batch, offset, timestamp, sequence, key, value, headers = columns
    arrays = [
        _fixed(pa.int32(), rows, batch),
        _fixed(pa.int64(), rows, offset),
        _fixed(pa.int64(), rows, timestamp),
        _fixed(pa.int32(), rows, sequence),
        _cells(pa.binary(), rows, key),
        _cells(pa.binary(), rows, value),
        _headers(rows, headers),
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _fixed(kind: Any, rows: int, data: bytes) -> Any:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(data)])


def _cells(kind: Any, rows: int, cells: tuple[bytes | None, bytes, bytes]) -> Any:
    present, ends, data = (None if part is None else pa.py_buffer(part) for part in cells)
    return pa.Array.from_buffers(kind, rows, [present, ends, data])


def _headers(rows: int, headers: Any) -> Any:
    if headers is None:
        zeros = pa.py_buffer(bytes(4 * rows + 4))
        names, values = (pa.array([], kind.type) for kind in HEADERS.value_type)
        count = 0
    else:
        ends, name, value, count = headers
        zeros = pa.py_buffer(ends)
        names, values = _cells(pa.string(), count, name), _cells(pa.binary(), count, value)
    pairs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    return pa.Array.from_buffers(HEADERS, rows, [None, zeros], children=[pairs])


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
        BatchProblem(index, _crc_error(batches, index))
        for index in np.flatnonzero(chosen & ~is_valid).tolist()
    ]
    if problems:
        yield Columns(SCHEMA.empty_table(), tuple(problems))
    indexes = np.flatnonzero(chosen & is_valid)
    if len(indexes):
        read = read_in_python if engine.core is None else read_natively
        yield from read(batches, indexes)


def read_batch(batch: Batch, *, check_crc: bool = True) -> Iterator[Columns]:
    """Yield the records of one batch of any magic, by the reader; its index is 0."""
    if check_crc:
        try:
            batch.ensure_valid()
        except WireError as error:
            yield Columns(SCHEMA.empty_table(), (BatchProblem(0, bare(error)),))
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
