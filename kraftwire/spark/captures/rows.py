"""Rows on their way into Arrow: kept as tuples, turned into columns all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kraftwire.spark.tables.columns import Table

__all__ = ["CHUNK_ROWS", "Rows"]

# Enough for a good compression of each column, few enough to stay small.
CHUNK_ROWS = 65_536


class Rows:
    """The rows of one table.

    Shape: `add` takes a tuple with the cells of a row, in the order of the table's columns; cells
    of structs are tuples in the order of their fields.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._rows: list[tuple[Any, ...]] = []
        self._chunks: list[pa.RecordBatch] = []
        self.add: Callable[[tuple[Any, ...]], None] = self._rows.append

    def pack(self, *, at_least: int = CHUNK_ROWS) -> None:
        """Turn the rows into Arrow if there are enough of them."""
        if len(self._rows) < max(at_least, 1):
            return
        schema = self.table.arrow
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(each, kind) for each, kind in zip(columns, schema.types, strict=True)]
        self._rows.clear()
        self._chunks.append(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def take(self) -> list[pa.RecordBatch]:
        """What was packed since the last call."""
        taken, self._chunks = self._chunks, []
        return taken
