"""The tables of a capture in one process; the pipeline does the same in many."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import pyarrow as pa

from kraftwire.spark.captures.connection_parts import decode_part, parts, to_cut
from kraftwire.spark.captures.files import file_rows
from kraftwire.spark.captures.packet_index import index_capture
from kraftwire.spark.captures.recording import Recording, bins
from kraftwire.spark.captures.tables import CAPTURE_TABLES, Tables
from kraftwire.spark.tables import find_table

# A task decodes this much at once, and holds it in memory.
BIN_BYTES = 32 * 1024 * 1024

CaptureName = str | os.PathLike[str]


def decode_tables(
    source: CaptureName | Sequence[CaptureName],
    *,
    tables: Collection[str] = CAPTURE_TABLES,
    bin_bytes: int = BIN_BYTES,
    cut_bytes: int | None = None,
) -> dict[str, pa.Table]:
    """Return the tables of a capture, or of a rotated one's files in order of time, by name.

    The result has all of `tables`, typed ones too, perhaps without rows; rows are in order of
    connections. At most about `bin_bytes` of packets are held at once, unless one connection has
    more. Raises: StorageError if a file cannot be opened or is not a capture.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else source
    recording = Recording([index_capture(path) for path in paths])
    made = Tables(tables)
    names = [*made.rows, *(each.table.name for each in made.typed.values())]
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    cut = [] if cut_bytes is None else to_cut(recording, cut_bytes)
    for numbers in bins(recording.connections, bin_bytes):
        for name, batch in made.bin(recording, [each for each in numbers if each not in cut]):
            batches[name].append(batch)
    for number in cut:
        for part in parts(recording, number, cut_bytes or 1, made.rows):
            for name, batch in decode_part(made, recording, part):
                batches[name].append(batch)
    for name, about in file_rows(recording, made.sums):
        made.add(name, about)
    for name, batch in made.take():
        batches[name].append(batch)
    return {
        name: pa.Table.from_batches(each, schema=find_table(name).arrow)
        for name, each in batches.items()
    }
