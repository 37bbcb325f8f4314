"""`format("kafka-capture")`: captures as a table.

Planning finds files, chains rotated ones and indexes those that need more than one task; a task
decodes connections to Arrow batches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from kraftwire.collector import rare_collection
from kraftwire.decode.files import FileKind, open_source
from kraftwire.decode.files.decode import unknown_text
from kraftwire.errors import StorageError, UsageError
from kraftwire.spark.captures.connection_parts import ConnectionPart, decode_part, parts
from kraftwire.spark.captures.connections import may_be_called
from kraftwire.spark.captures.file_index import FileIndex, IndexedConnection
from kraftwire.spark.captures.files import file_rows, unreadable_file
from kraftwire.spark.captures.packet_index import index_capture
from kraftwire.spark.captures.plan import CUT_BYTES, Share, divide, recordings
from kraftwire.spark.captures.recording import Recording
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.captures.tables import CAPTURE_TABLES, CaptureTables
from kraftwire.spark.inputs import InputFile, capture_families, find_inputs
from kraftwire.spark.paths import has_name, local_path, readable
from kraftwire.spark.sources.filters import CaptureBounds, capture_bounds
from kraftwire.spark.sources.input_paths import InputPaths
from kraftwire.spark.sources.options import by_size, positive, pushes
from kraftwire.spark.tables import find_table
from kraftwire.spark.tables.apis import TYPED_TABLES, typed_table

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

_SPLIT_BYTES = 64 * 1024 * 1024

# Tables whose rows are about one API each: omitting other frames changes none of them.
_BY_API = frozenset({"frames", "exchanges", "group_exchanges"})

# Tables about whole files, and about connections to which a filter on rows does not apply.
_OF_FILES = frozenset({"files", "bad_input"})


@dataclass(frozen=True)
class _Task:
    """A capture to decode as a whole, by its path, or the indexes of a recording with connections.

    `has_files` is true for the task with the rows about the files themselves. `part` is that of the
    one connection that was cut.
    """

    path: str = ""
    indexes: tuple[FileIndex, ...] = ()
    connections: tuple[int, ...] = ()
    has_files: bool = True
    part: ConnectionPart | None = None


class CaptureDataSource(DataSource):
    """Captures as a table; see README.md for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "kafka-capture"

    def schema(self) -> StructType:
        """Return the columns of the requested table."""
        table = find_table(_table(self.options))
        return InputPaths(self.options, self.name()).all_columns(table.spark)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the requested columns."""
        return _CaptureReader(self.options, schema)


class _CaptureReader(DataSourceReader):
    """Plans on the driver and reads in a task."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._table = _table(options)
        self._paths = InputPaths(options, "kafka-capture")
        self._split = positive(options, "splitBytes", _SPLIT_BYTES)
        self._pushes = pushes(options)
        self._schema = schema
        self._bounds = CaptureBounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note the filters that save reading; Spark evaluates every filter anyway."""
        if self._pushes:
            self._bounds = capture_bounds(filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Return tasks of about `splitBytes`, with small captures combined."""
        return [InputPartition(tasks) for tasks in by_size(self._tasks(), self._split)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of some tasks, as Arrow batches that have exactly the schema."""
        target = to_arrow_schema(self._schema, timezone="UTC")
        with rare_collection():
            for task in partition.value:
                path = task.path or task.indexes[0].path
                for found in self._batches(task):
                    batch = self._paths.with_columns(found, path, target)
                    yield batch.select(target.names).cast(target)

    def _batches(self, task: _Task) -> Iterator[Any]:
        tables = CaptureTables((self._table,), self._selection)
        try:
            recording = Recording(task.indexes or [index_capture(task.path)])
        except StorageError as error:
            # It may have been deleted since it was found.
            size = Path(task.path).stat().st_size if Path(task.path).exists() else 0
            rows = unreadable_file(readable(task.path), size, readable(str(error)))
        else:
            if task.part is not None:
                decoded = decode_part(tables, recording, task.part)
            else:
                wanted = task.connections if task.indexes else self._wanted(recording)
                decoded = tables.decode(recording, wanted)
            for _, batch in decoded:
                yield batch
            rows = file_rows(recording, tables.sums) if task.has_files else iter(())
        for name, about in rows:
            tables.add(name, about)
        for _, batch in tables.take_batches():
            yield batch

    def _apis(self) -> frozenset[int] | None:
        """Return the APIs whose frames are sufficient, None for all."""
        if self._table in TYPED_TABLES:
            return frozenset({typed_table(self._table).api_key})
        return self._bounds.apis if self._table in _BY_API else None

    def _tasks(self) -> Iterator[tuple[_Task, int]]:
        """Yield every task with about how many bytes it reads."""
        self._paths.require()
        names, pattern = self._paths.names, self._paths.pattern
        warnings: list[str] = []
        found = find_inputs(names, warnings.append, None, pattern=pattern)
        # A file that cannot be read is a task too: it reports the problem.
        captures = [file for file in found if file.is_capture or not file.digest]
        if warnings and not captures:
            raise UsageError(warnings[0])
        _refuse_others((name for name in names if has_name(Path(name), pattern)), captures)
        for family in capture_families(captures):
            if len(family) == 1 and family[0].size <= self._split:
                yield _Task(family[0].path), family[0].size
            else:
                yield from self._indexed(family)

    def _indexed(self, family: Sequence[InputFile]) -> Iterator[tuple[_Task, int]]:
        """Yield the tasks of captures that are rotated or large."""
        indexes = []
        for file in family:
            try:
                indexes.append(index_capture(file.path))
            except StorageError:
                yield _Task(file.path), file.size
        for recording in recordings(indexes):
            has_files = True
            for share in self._shares(recording):
                for part in self._parts(recording, share):
                    span = None if part is None else part.span
                    files = recording.limited_to(share.connections, span).files
                    size = sum(runs.size for file in files for runs in file.runs)
                    yield _Task("", tuple(files), share.connections, has_files, part), size
                    has_files = False

    def _shares(self, recording: Recording) -> Iterable[Share]:
        """Return the connections of each task, at least one where the table is about files."""
        # A row of `files` covers the whole file.
        size_max = sys.maxsize if self._table == "files" else self._split
        # A task that is twice as long as the others delays a query little.
        long = max(size_max, min(2 * size_max, CUT_BYTES))
        shares = list(divide(recording, self._wanted(recording), size_max, long))
        return shares or [Share((), 0)] if self._table in _OF_FILES else shares

    def _parts(self, recording: Recording, share: Share) -> Iterator[ConnectionPart | None]:
        """Yield the parts of a long connection; None for connections that stay whole."""
        if not share.is_long:
            return iter((None,))
        (number,) = share.connections
        return parts(recording, number, self._split, (self._table,), self._selection)

    @property
    def _selection(self) -> Selection:
        """Return the frames that may have rows."""
        return Selection(apis=self._bounds.apis if self._table in _BY_API else None)

    def _wanted(self, recording: Recording) -> list[int]:
        """Return the connections that may have rows that pass the filters."""
        numbers = range(1, len(recording.connections) + 1)
        if self._table in _OF_FILES:
            return list(numbers)
        return [number for number in numbers if self._may_pass(recording.connections[number - 1])]

    def _may_pass(self, indexed: IndexedConnection) -> bool:
        bounds = self._bounds
        if bounds.connections is not None and not may_be_called(indexed, bounds.connections):
            return False
        is_timed = "time" in find_table(self._table).arrow.names
        return not is_timed or bounds.overlaps(indexed.first_ns, indexed.last_ns)


def _refuse_others(names: Iterable[str], captures: Sequence[InputFile]) -> None:
    """Refuse a file that is named and is no capture: no row would say so. Raises: UsageError."""
    known = {file.path for file in captures}
    for path in map(Path, map(local_path, names)):
        if not path.is_file() or os.path.abspath(path) in known:
            continue
        with open_source(path) as source:
            kind: FileKind = source.kind
            if not kind.is_capture:  # else it is another name of one that was found
                what = f"a file of a log directory ({kind})"
                text = unknown_text(source) if kind.is_unknown else what
                raise UsageError(f"{path}: no capture: {text}")


def _table(options: Any) -> str:
    value = str(options.get("table", "exchanges"))
    if value not in CAPTURE_TABLES and value not in TYPED_TABLES:
        wanted = ", ".join((*CAPTURE_TABLES, "a request or response such as fetch_request"))
        raise UsageError(f"option table: expected one of {wanted}, found {value!r}")
    return value
