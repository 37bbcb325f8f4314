"""Whether every byte of every file is in exactly one place: the rows of files, and the check.

Folders and files that could not even be listed or opened are sources with nothing but a finding.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow.dataset as ds

from kraftwire.decode.files import open_source
from kraftwire.decode.files.decode import unknown_text
from kraftwire.errors import StorageError
from kraftwire.spark.captures.files import FileSums, file_rows, unreadable_file
from kraftwire.spark.inputs import InputFile
from kraftwire.spark.paths import expanded, readable
from kraftwire.spark.run.derive import UNDERSTOOD
from kraftwire.spark.run.manifest import Source
from kraftwire.spark.run.plan import PlannedSource
from kraftwire.spark.run.tasks import UnitResult
from kraftwire.spark.tables.files import BadBytes, FileBytes

_PLACES = (
    "kafka_bytes", "tls_bytes", "other_bytes", "duplicate_bytes", "header_bytes", "bad_bytes",
)  # fmt: skip

Row = tuple[str, FileBytes | BadBytes]

_STATE = "unread"


def capture_rows(planned: PlannedSource, done: Iterable[UnitResult]) -> Iterator[Row]:
    """Return the rows of a recording's files."""
    sums: dict[str, FileSums] = {}
    for each in done:
        for path, more in each.sums.items():
            sums.setdefault(path, FileSums()).add(more)
    assert planned.recording is not None
    yield from file_rows(planned.recording, sums)


def log_rows(done: Iterable[UnitResult], before: int = 0) -> Iterator[Row]:
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


def undecoded(folder: Path, files: Sequence[InputFile], tops: Container[Path]) -> list[str]:
    """Return which inputs are no captures and no files of logs, and what they are.

    A folder may hold other files: they count if there is nothing else. `tops` are the named paths.
    """
    rows = ds.dataset(folder / "files").to_table(columns=["file", "kind"]).to_pylist()
    known = {row["file"] for row in rows if row["kind"] in UNDERSTOOD}
    unknown = [file.path for file in files if readable(file.path) not in known]
    is_all = len(unknown) == len(files)
    return [_described(path) for path in unknown if is_all or Path(path) in tops]


def _described(path: str) -> str:
    try:
        with open_source(Path(path)) as source:
            return f"{readable(path)}: nothing is decoded: {unknown_text(source)}"
    except StorageError as error:
        return f"nothing is decoded: {readable(str(error))}"


def unread_source(error: StorageError) -> Source:
    """Return the source of a folder or file that cannot be read; its path is in the state."""
    path = os.path.abspath(error.file)
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Source(f"unread-{name}", [], state={_STATE: path})


def unread_rows(error: StorageError) -> Iterator[tuple[str, BadBytes]]:
    """Return its row of bad_input; the length is unknown."""
    path = os.path.abspath(error.file)
    id = "unreadable-folder" if os.path.isdir(path) else "unreadable-file"
    problem = readable(error.problem)
    yield "bad_input", BadBytes(readable(path), 0, 0, "file", id, problem)


def outdated(sources: Mapping[str, Source], inputs: Iterable[str], now: Iterable[str]) -> list[str]:
    """Return the names of such sources under some inputs, except those that are still unread."""
    tops = {Path(os.path.abspath(path)) for path in expanded(inputs)}
    found = []
    for name, source in sources.items():
        if _STATE in source.state and name not in now:
            path = Path(source.state[_STATE])
            if not tops.isdisjoint((path, *path.parents)):
                found.append(name)
    return found
