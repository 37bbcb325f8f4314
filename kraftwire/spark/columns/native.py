"""The records of batches, by the engine in C, which fills the buffers of Arrow's arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kraftwire import engine
from kraftwire.spark.columns.batches import Batches, unpacked
from kraftwire.spark.columns.fallback import read_plainly
from kraftwire.spark.columns.heap import LONG_BYTES, give_back
from kraftwire.spark.columns.result import BYTES_MAX, HEADERS, ROWS_MAX, SCHEMA, Columns

__all__ = ["read_natively"]


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
                give_back()
        while found:
            yield found.pop()
        if needs_fallback:
            at, done, _ = place
            yield from read_plainly(batches, group.numbers[at : at + 1], done)
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
                give_back()
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
