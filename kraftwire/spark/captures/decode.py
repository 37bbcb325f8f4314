"""The tables of a capture in one process; the pipeline does the same in many."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import pyarrow as pa

from kraftwire.spark.captures.files import file_rows
from kraftwire.spark.captures.packet_index import index_capture
from kraftwire.spark.captures.recording import Recording
from kraftwire.spark.captures.tables import CAPTURE_TABLES, TOGETHER_BYTES_MAX, CaptureTables
from kraftwire.spark.tables import find_table

CaptureName = str | os.PathLike[str]


def decode_tables(
    source: CaptureName | Sequence[CaptureName],
    *,
    tables: Collection[str] = CAPTURE_TABLES,
    bytes_max: int = TOGETHER_BYTES_MAX,
) -> dict[str, pa.Table]:
    """Return the tables of a capture, or of a rotated one's files in order of time, by name.

    The result has all of `tables`, typed ones too, perhaps without rows; rows are in order of
    connections. At most about `bytes_max` of packets are held at once, unless one connection has
    more. Raises: StorageError if a file cannot be opened or is not a capture.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else source
    recording = Recording([index_capture(path) for path in paths])
    made = CaptureTables(tables)
    names = [*made.rows, *(each.table.name for each in made.typed.values())]
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    numbers = range(1, len(recording.connections) + 1)
    for name, batch in made.decode(recording, numbers, bytes_max):
        batches[name].append(batch)
    for name, about in file_rows(recording, made.sums):
        made.add(name, about)
    for name, batch in made.take_batches():
        batches[name].append(batch)
    return {
        name: pa.Table.from_batches(each, schema=find_table(name).arrow)
        for name, each in batches.items()
    }
