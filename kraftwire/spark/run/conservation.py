"""Whether every byte of every file is in exactly one place: the rows of files, and the check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftwire.spark.captures.files import file_rows
from kraftwire.spark.captures.sums import FileSums
from kraftwire.spark.paths import readable
from kraftwire.spark.run.inputs import InputFile
from kraftwire.spark.run.plan import Planned
from kraftwire.spark.run.tasks import Done
from kraftwire.spark.tables import TABLES

__all__ = ["capture_rows", "log_rows", "unbalanced", "unreadable_rows"]

_PLACES = (
    "kafka_bytes", "tls_bytes", "other_bytes", "duplicate_bytes", "header_bytes", "bad_bytes",
)  # fmt: skip
_NAMES = tuple(column.name for column in TABLES["files"].columns)

Row = tuple[str, tuple[Any, ...]]


def capture_rows(planned: Planned, done: Iterable[Done]) -> Iterator[Row]:
    """Return the rows of a recording's files."""
    sums: dict[str, FileSums] = {}
    for each in done:
        for path, more in each.sums.items():
            sums.setdefault(path, FileSums()).add(more)
    assert planned.series is not None
    yield from file_rows(planned.series, sums)


def log_rows(done: Iterable[Done], before: int = 0) -> Iterator[Row]:
    """Return the row of a file that was decoded in ranges: their sums.

    `before` counts the bytes before the first range: batches that an earlier run has read.
    """
    rows = [row for each in done for row in each.files]
    if not rows:
        return
    whole = dict(rows[0])
    for row in rows[1:]:
        for name in ("size", *_PLACES):
            whole[name] = (whole[name] or 0) + (row[name] or 0)
    for name in ("size", "kafka_bytes"):
        whole[name] += before
    yield "files", tuple(whole[name] for name in _NAMES)


def unreadable_rows(file: InputFile, problem: str) -> Iterator[Row]:
    """Return the rows of a capture that cannot be read."""
    name = readable(file.path)
    yield "bad_input", (name, 0, file.size, "file", "unreadable-file", problem, None)
    yield "files", (name, file.size, "unknown", 0, 0, 0, 0, 0, file.size, None)


def unbalanced(row: tuple[Any, ...]) -> str:
    """Return what is wrong with the sums of a row of files, empty if nothing is."""
    cells = dict(zip(_NAMES, row, strict=True))
    parts = {name: cells[name] or 0 for name in _PLACES}
    total = sum(parts.values())
    if total == cells["size"]:
        return ""
    sums = ", ".join(f"{name.removesuffix('_bytes')} {count:,}" for name, count in parts.items())
    return f"{cells['file']}: {cells['size']:,} bytes, but {sums} make {total:,}"
