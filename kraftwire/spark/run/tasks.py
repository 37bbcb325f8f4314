"""The tasks in Spark's worker processes: index a capture, decode a unit of work.

They are plain functions of values that can be pickled. A task writes its parts and returns where
they are.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kraftwire.errors import StorageError
from kraftwire.spark.captures.connection_parts import ConnectionPart, decode_part, parts
from kraftwire.spark.captures.file_index import FileIndex, PacketRuns
from kraftwire.spark.captures.files import FileSums
from kraftwire.spark.captures.packet_index import index_capture
from kraftwire.spark.captures.recording import Recording, Span
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.captures.tables import CaptureTables
from kraftwire.spark.paths import own_folder, readable
from kraftwire.spark.run.incremental import REST, RangeRead, mark_of, whole_batches
from kraftwire.spark.run.manifest import TablePart
from kraftwire.spark.run.parts import TASKS, PartWriter
from kraftwire.spark.tail import BatchMark

_INDEXES = "indexes"
_RUNS = ".runs"
_CUTS = "cuts"
_DONE = "done"

# Small consecutive units form one task up to this size; each counts for at least a minimum.
# Every core gets a few tasks anyway.
_BUNDLE_BYTES = 2 * 1024 * 1024
_UNIT_BYTES_MIN = 32 * 1024
_TASKS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Settings that all units of a run share; `tables` are those that come from inputs."""

    folder: str
    selection: Selection
    tables: frozenset[str]
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of work.

    For a capture, it has the names of its files' indexes and the connections to decode; for another
    file, its path and a range. `size` is about how many bytes are read. With `cut_bytes`, one
    connection is not decoded, but cut into parts of at most that size; `cut` names a part.
    """

    name: str
    size: int
    indexes: tuple[str, ...] = ()
    connections: tuple[int, ...] = ()
    path: str = ""
    start: int = 0
    end: int = 0
    cut_bytes: int = 0
    cut: str = ""


@dataclass(slots=True)
class UnitResult:
    """The result of a unit: parts, and the byte counts or rows of `files` that it knows; for one
    that cuts a connection, the units for its parts.

    `read` is how far the range of a log file was read. A unit that could not be decoded because a
    capture cannot be read any more, such as one that was deleted, names that file as `lost`.
    """

    unit: str
    more: list[Unit] = field(default_factory=list)
    parts: list[TablePart] = field(default_factory=list)
    sums: dict[str, FileSums] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    read: RangeRead | None = None
    lost: str = ""
    problem: str = ""


Work = tuple[JobSettings, Unit]


def bundled(works: Sequence[Work], cores: int) -> Iterator[list[Work]]:
    """Group work into tasks, in order; a large unit has its own task."""
    costs = [max(unit.size, _UNIT_BYTES_MIN) for _, unit in works]
    most = min(_BUNDLE_BYTES, sum(costs) // (_TASKS_PER_CORE * cores))
    bundle: list[Work] = []
    size = 0
    for work, cost in zip(works, costs, strict=True):
        if bundle and size + cost > most:
            yield bundle
            bundle, size = [], 0
        bundle.append(work)
        size += cost
    if bundle:
        yield bundle


@dataclass(frozen=True, slots=True)
class ForEach:
    """Runs a task for each piece of work in a bundle, one after the other; can be pickled."""

    task: Callable[[Work], Any]

    def __call__(self, bundle: list[Work]) -> list[Any]:
        """Return the result of each."""
        return [self.task(work) for work in bundle]


@dataclass(frozen=True, slots=True)
class _StoredRuns:
    """The runs of an index that lie in a file, in chunks."""

    path: Path

    def __iter__(self) -> Iterator[PacketRuns]:
        with open(self.path, "rb") as file:
            while file.peek(1):
                yield pickle.load(file)


def index_unit(work: Work) -> str:
    """Index a capture and store the index aside; return why that was not possible, or nothing."""
    job, unit = work
    target = own_folder(Path(job.folder) / TASKS / _INDEXES)
    fresh = target / f"{unit.name}.{_attempt()}.new"
    stored = _StoredRuns(target / f"{unit.name}{_RUNS}")
    try:
        with open(fresh, "wb") as runs:
            index = index_capture(unit.path, lambda chunk: pickle.dump(chunk, runs))
    except StorageError as error:
        fresh.unlink()
        return readable(str(error))
    fresh.replace(stored.path)
    index.runs = stored
    with open(fresh, "wb") as head:
        pickle.dump(index, head)
    fresh.replace(target / unit.name)
    return ""


def load_index(folder: Path, name: str) -> FileIndex:
    """Load a stored index; its runs are read when they are wanted."""
    with open(folder / TASKS / _INDEXES / name, "rb") as file:
        index: FileIndex = pickle.load(file)
    return index


def _load_recording(folder: Path, unit: Unit, span: Span | None = None) -> Recording:
    """Load the recording of a unit, with the runs of its connections, perhaps only in a span."""
    recording = Recording([load_index(folder, name) for name in unit.indexes])
    return recording.limited_to(unit.connections, span)


def decode_unit(work: Work) -> UnitResult:
    """Decode a unit and write its parts aside."""
    job, unit = work
    try:
        return _decode(job, unit)
    except StorageError as error:
        names = (load_index(Path(job.folder), name).path for name in unit.indexes)
        if error.file not in names:
            raise
        return UnitResult(unit.name, lost=error.file, problem=readable(str(error)))


def _decode(job: JobSettings, unit: Unit) -> UnitResult:
    done = UnitResult(unit.name)
    if unit.cut_bytes:
        done.more = list(_cut(job, unit))
        return done
    with PartWriter(Path(job.folder), unit.name, _attempt(), dict(job.tags)) as writer:
        if unit.indexes:
            _decode_capture(job, unit, writer, done)
        else:
            _decode_log(job, unit, writer, done)
    done.parts += writer.parts
    marks = own_folder(Path(job.folder) / TASKS / _DONE)
    (marks / f"{unit.name}.{unit.size}").touch()
    return done


def _attempt() -> int:
    """Return the number of Spark's attempt, so that two attempts never write to one file."""
    # On the driver another thread may still import it.
    contexts = getattr(sys.modules.get("pyspark"), "TaskContext", None)
    context = None if contexts is None else contexts.get()
    return 0 if context is None else int(context.taskAttemptId())


def _cut(job: JobSettings, unit: Unit) -> Iterator[Unit]:
    """Cut a connection, store the state of its parts aside, and return the units to decode."""
    folder = Path(job.folder)
    recording = _load_recording(folder, unit)
    (number,) = unit.connections
    target = own_folder(folder / TASKS / _CUTS)
    made: list[str] = []
    for part in parts(recording, number, unit.cut_bytes, job.tables, job.selection):
        name = f"{unit.name}-{len(made):04}"
        fresh = target / f"{name}.{_attempt()}.new"
        with open(fresh, "wb") as file:
            pickle.dump(part, file)
        fresh.replace(target / name)
        made.append(name)
    for name in made:
        yield replace(unit, name=name, size=unit.size // len(made), cut_bytes=0, cut=name)


def _decode_capture(job: JobSettings, unit: Unit, writer: PartWriter, done: UnitResult) -> None:
    """Decode connections, or a part of one."""
    folder, tables = Path(job.folder), CaptureTables(job.tables, job.selection)
    if unit.cut:
        with open(folder / TASKS / _CUTS / unit.cut, "rb") as file:
            part: ConnectionPart = pickle.load(file)
        batches = decode_part(tables, _load_recording(folder, unit, part.span), part)
    else:
        batches = tables.decode(_load_recording(folder, unit), unit.connections)
    for found in (batches, tables.take_batches()):
        for table, batch in found:
            writer.write(table, batch)
    done.sums = tables.sums


def _decode_log(job: JobSettings, unit: Unit, writer: PartWriter, done: UnitResult) -> None:
    """Decode a range; what follows its last whole batch goes into separate parts, so that the file
    may grow.
    """
    end = whole_batches(unit.path, unit.start, unit.end)
    if end in (unit.start, unit.end):
        mark, is_valid = _decode_range(job, unit, writer, done)
        done.read = RangeRead(unit.name, mark, is_valid, has_rest=False)
        return
    mark, is_valid = _decode_range(job, replace(unit, end=end), writer, done)
    done.read = RangeRead(unit.name, mark, is_valid, has_rest=True)
    rest = replace(unit, name=unit.name + REST, start=end)
    with PartWriter(Path(job.folder), rest.name, _attempt(), dict(job.tags)) as more:
        _decode_range(job, rest, more, done)
    done.parts += more.parts


def _decode_range(
    job: JobSettings, unit: Unit, writer: PartWriter, done: UnitResult
) -> tuple[BatchMark | None, bool]:
    """Decode a range; return its last batch, and whether all batches are valid."""
    from kraftwire.spark.logs import LOG_TABLES, LogOptions, decode_pieces

    # The table of batches shows where the last whole batch ends.
    options = LogOptions((job.tables & LOG_TABLES) | {"batches"}, size_max=unit.end)
    batches = None
    for tables in decode_pieces(unit.path, options, unit.start, unit.end):
        found = tables.get("batches")
        if found is not None and len(found):
            batches = found
        done.files += tables.pop("files").to_pylist() if "files" in tables else []
        # Only the writer refers to the rows, so they are freed when they are written.
        while tables:
            writer.write(*tables.popitem())
    row = done.files[-1]
    mark = None if batches is None else mark_of(batches)
    return mark, mark is not None and row["kafka_bytes"] == row["size"] == mark.end - unit.start
