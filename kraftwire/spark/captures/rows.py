"""The rows of a table before they become Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kraftwire.spark.tables.columns import Table

__all__ = ["CHUNK_ROWS", "Rows"]

# Enough for a good compression of each column, few enough to stay small.
CHUNK_ROWS = 65_536
_TURNED_ROWS = 512


class Rows:
    """The rows of one table.

    `add` takes the object that a row is about; cells of structs are tuples in the order of their
    fields.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows: list[tuple[Any, ...]] = []
        # The cells of earlier rows by columns.
        self._columns: list[list[Any]] = [[] for _ in table.columns]
        self._chunks: list[pa.RecordBatch] = []
        self._row = table.row

    def add(self, about: Any) -> None:
        """Add the row about an object."""
        self._rows.append(self._row(about))
        if len(self._rows) >= _TURNED_ROWS:
            self._turn()

    def _turn(self) -> None:
        """Turn the latest rows into columns, while they are in the processor's cache."""
        if self._rows:
            for column, cells in zip(self._columns, self.table.cells(self._rows), strict=True):
                column += cells
            self._rows.clear()

    def pack(self, *, at_least: int = CHUNK_ROWS) -> None:
        """Convert the rows to Arrow if there are enough of them."""
        if len(self._columns[0]) + len(self._rows) < max(at_least, 1):
            return
        self._turn()
        schema = self.table.arrow
        arrays = [
            _array(cells, kind) for cells, kind in zip(self._columns, schema.types, strict=True)
        ]
        for cells in self._columns:
            cells.clear()
        self._chunks.append(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def take(self) -> list[pa.RecordBatch]:
        """Return what was packed since the last call."""
        taken, self._chunks = self._chunks, []
        return taken


def _array(cells: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column; damaged numbers out of range are null."""
    try:
        return pa.array(cells, kind)
    except (OverflowError, pa.ArrowInvalid):
        if not pa.types.is_integer(kind) and not pa.types.is_timestamp(kind):
            raise
        most = 1 << kind.bit_width - 1
        return pa.array([_within(each, most) for each in cells], kind)


def _within(cell: int | None, most: int) -> int | None:
    return cell if cell is not None and -most <= cell < most else None
