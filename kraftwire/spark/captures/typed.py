"""Typed tables: the messages of one API and direction with all their fields."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from kraftwire.spark.captures.bodies import Read
from kraftwire.spark.captures.rows import CHUNK_ROWS
from kraftwire.spark.tables.apis import TYPED_TABLES, TypedTable, typed_table
from kraftwire.spark.tables.cells import micros
from kraftwire.wire.message import Message

__all__ = ["TypedRows", "typed_rows"]

# Messages hold references to the bytes of their frames, so they are not kept for long.
_HELD_BYTES_MAX = 8 * 1024 * 1024


class TypedRows:
    """The rows of one typed table, before they become Arrow."""

    def __init__(self, table: TypedTable) -> None:
        self.table = table
        self._evidence: list[tuple[Any, ...]] = []
        self._held: list[tuple[Message, int]] = []
        self._bytes = 0
        self._chunks: list[pa.RecordBatch] = []

    def add(self, read: Read) -> None:
        """Add a frame, if its body could be decoded completely."""
        if read.body is None:
            return
        frame = read.frame
        self._evidence.append(
            (
                frame.file, frame.position, micros(frame.time_ns), frame.time_ns,
                frame.connection, frame.api_version, frame.correlation_id,
                None if frame.request is None else frame.request.client_id,
            )
        )  # fmt: skip
        self._held.append((read.body, read.version))
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

    def take(self) -> list[pa.RecordBatch]:
        """Return what was packed since the last call."""
        taken, self._chunks = self._chunks, []
        return taken


def typed_rows(wanted: Collection[str]) -> dict[tuple[int, bool], TypedRows]:
    """Return rows for the typed tables among some, by API key and whether it is a request."""
    tables = [typed_table(name) for name in wanted if name in TYPED_TABLES]
    return {(table.api_key, table.is_request): TypedRows(table) for table in tables}
