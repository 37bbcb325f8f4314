"""Rows before they become Arrow: tuples, or columns of many similar rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftwire.spark.tables.columns import Table

__all__ = ["CHUNK_ROWS", "Alike", "Cells", "Rows"]

# Enough for a good compression of each column, few enough to stay small.
CHUNK_ROWS = 65_536

Ints: TypeAlias = "npt.NDArray[np.int64]"

# Numbers, some of which may be null, or bytes.
Cells: TypeAlias = "Ints | tuple[Ints, npt.NDArray[np.bool_]] | list[bytes]"


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows that differ only in some columns.

    Row i equals `samples[which[i]]`, except for the columns in `cells`, by name; it comes after
    `after[i]` of the rows that were added one by one, where `after` never decreases.
    """

    samples: Sequence[tuple[Any, ...]]
    which: Ints
    after: Ints
    cells: Mapping[str, Cells]


class Rows:
    """The rows of one table.

    `add` takes a tuple with the cells of a row, in the order of the table's columns; cells
    of structs are tuples in the order of their fields.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows: list[tuple[Any, ...]] = []
        self._alike: list[Alike] = []
        self._alike_count = 0
        self._chunks: list[pa.RecordBatch] = []
        self.add: Callable[[tuple[Any, ...]], None] = self._rows.append

    def __len__(self) -> int:
        """Return how many rows were added one by one and are not packed yet."""
        return len(self._rows)

    def add_alike(self, rows: Alike) -> None:
        """Add many rows at once."""
        if len(rows.which):
            self._alike.append(rows)
            self._alike_count += len(rows.which)

    def pack(self, *, at_least: int = CHUNK_ROWS) -> None:
        """Convert the rows to Arrow if there are enough of them."""
        count = len(self._rows) + self._alike_count
        if count < max(at_least, 1):
            return
        schema = self.table.arrow
        columns = list(zip(*self._rows, strict=True)) or [()] * len(schema)
        arrays = [_single(each, kind) for each, kind in zip(columns, schema.types, strict=True)]
        if self._alike:
            arrays = _merged(arrays, len(self._rows), self._alike, schema)
        self._rows.clear()
        self._alike.clear()
        self._alike_count = 0
        self._chunks.append(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def take(self) -> list[pa.RecordBatch]:
        """Return what was packed since the last call."""
        taken, self._chunks = self._chunks, []
        return taken


def _merged(
    arrays: list[pa.Array], count: int, alike: list[Alike], schema: pa.Schema
) -> list[pa.Array]:
    """Return the columns of `count` rows, merged with those of similar rows."""
    after = np.concatenate([each.after for each in alike])
    order = np.empty(count + len(after), np.int64)
    is_single = np.ones(len(order), np.bool_)
    places = after + np.arange(len(after))
    is_single[places] = False
    order[places] = count + np.arange(len(after))
    order[is_single] = np.arange(count)
    is_in_order = bool((order[1:] > order[:-1]).all())
    merged = []
    for at, (single, field) in enumerate(zip(arrays, schema, strict=True)):
        column = pa.concat_arrays([single, *_columns(alike, at, field)])
        merged.append(column if is_in_order else column.take(pa.array(order)))
    return merged


def _columns(alike: list[Alike], at: int, field: pa.Field) -> Iterator[pa.Array]:
    """Return a column of similar rows, in pieces."""
    if field.name in alike[0].cells:
        for each in alike:
            yield _array(each.cells[field.name], field.type)
        return
    samples = [row[at] for each in alike for row in each.samples]
    shifts = np.cumsum([0, *(len(each.samples) for each in alike[:-1])])
    which = [each.which + shift for each, shift in zip(alike, shifts, strict=True)]
    yield _single(samples, field.type).take(pa.array(np.concatenate(which)))


def _single(cells: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of single cells; damaged numbers out of range are null."""
    try:
        return pa.array(cells, kind)
    except (OverflowError, pa.ArrowInvalid):
        if not pa.types.is_integer(kind) and not pa.types.is_timestamp(kind):
            raise
        most = 1 << kind.bit_width - 1
        return pa.array([_within(each, most) for each in cells], kind)


def _within(cell: int | None, most: int) -> int | None:
    return cell if cell is not None and -most <= cell < most else None


def _array(cells: Cells, kind: pa.DataType) -> pa.Array:
    if isinstance(cells, list):
        return pa.array(cells, kind)
    values, is_null = cells if isinstance(cells, tuple) else (cells, None)
    return pa.array(values, pa.int64(), mask=is_null).cast(kind)
