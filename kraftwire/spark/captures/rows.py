"""The rows of a table before they become Arrow, typed tables included."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from kraftwire.spark.captures.bodies import TableFrame
from kraftwire.spark.tables.apis import TYPED_TABLES, TypedTable, typed_table
from kraftwire.spark.tables.columns import Table, micros
from kraftwire.wire.message import Message

# Enough for a good compression of each column, few enough to stay small.
CHUNK_ROWS = 65_536
_TURNED_ROWS = 512

# Messages hold references to the bytes of their frames, so they are not kept for long.
_HELD_BYTES_MAX = 8 * 1024 * 1024


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

    def take_batches(self) -> list[pa.RecordBatch]:
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


class TypedRows:
    """The rows of one typed table, before they become Arrow."""

    def __init__(self, table: TypedTable) -> None:
        self.table = table
        self._evidence: list[tuple[Any, ...]] = []
        self._held: list[tuple[Message, int]] = []
        self._bytes = 0
        self._chunks: list[pa.RecordBatch] = []

    def add(self, frame: TableFrame) -> None:
        """Add a frame, if its body could be decoded completely."""
        body = frame.body
        if body is None:
            return
        self._evidence.append(
            (
                frame.file, frame.position, micros(frame.time_ns), frame.time_ns,
                frame.connection, frame.api_version, frame.correlation_id,
                None if frame.request is None else frame.request.client_id,
            )
        )  # fmt: skip
        self._held.append((body, frame.body_version))
        self._bytes += frame.size
        if self._bytes >= _HELD_BYTES_MAX or len(self._held) >= CHUNK_ROWS:
            self.pack(at_least=1)

    def pack(self, *, at_least: int = CHUNK_ROWS) -> None:
        """Convert the rows to Arrow if there are enough of them."""
        if len(self._held) < max(at_least, 1):
            return
        self._chunks.append(self.table.rows(self._evidence, self._held))
        self._evidence.clear()
        self._held.clear()
        self._bytes = 0

    def take_batches(self) -> list[pa.RecordBatch]:
        """Return what was packed since the last call."""
        taken, self._chunks = self._chunks, []
        return taken


def typed_rows(wanted: Collection[str]) -> dict[tuple[int, bool], TypedRows]:
    """Return rows for the typed tables among some, by API key and whether it is a request."""
    tables = [typed_table(name) for name in wanted if name in TYPED_TABLES]
    return {(table.api_key, table.is_request): TypedRows(table) for table in tables}
