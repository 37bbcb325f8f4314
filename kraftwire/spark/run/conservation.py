"""Whether every byte of every file is in exactly one place: the rows of files, and the check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraftwire.spark.captures.files import FileBytes, file_rows, unreadable_file
from kraftwire.spark.captures.findings import BadBytes
from kraftwire.spark.captures.sums import FileSums
from kraftwire.spark.paths import readable
from kraftwire.spark.run.inputs import InputFile
from kraftwire.spark.run.plan import Planned
from kraftwire.spark.run.tasks import Done

__all__ = ["capture_rows", "log_rows", "unbalanced", "unreadable_rows"]

_PLACES = (
    "kafka_bytes", "tls_bytes", "other_bytes", "duplicate_bytes", "header_bytes", "bad_bytes",
)  # fmt: skip

Row = tuple[str, FileBytes | BadBytes]


def capture_rows(planned: Planned, done: Iterable[Done]) -> Iterator[Row]:
    """Return the rows of a recording's files."""
    sums: dict[str, FileSums] = {}
    for each in done:
        for path, more in each.sums.items():
            sums.setdefault(path, FileSums()).add(more)
    assert planned.recording is not None
    yield from file_rows(planned.recording, sums)


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
    yield "files", FileBytes(**whole)


def unreadable_rows(file: InputFile, problem: str) -> Iterator[Row]:
    """Return the rows of a capture that cannot be read."""
    yield from unreadable_file(readable(file.path), file.size, problem)


def unbalanced(file: FileBytes) -> str:
    """Return what is wrong with the sums of a file, empty if nothing is."""
    parts = {name: getattr(file, name) or 0 for name in _PLACES}
    total = sum(parts.values())
    if total == file.size:
        return ""
    sums = ", ".join(f"{name.removesuffix('_bytes')} {count:,}" for name, count in parts.items())
    return f"{file.file}: {file.size:,} bytes, but {sums} make {total:,}"
