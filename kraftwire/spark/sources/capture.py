"""`format("kafka-capture")`: captures as a table.

Planning finds files, chains rotated ones and indexes those that need more than one task; a task
decodes connections to Arrow batches.
"""

from __future__ import annotations

import os
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
from kraftwire.spark.captures import BIN_BYTES, CAPTURE_TABLES, Recording, Tables, bins
from kraftwire.spark.captures.connection_parts import CUT_BYTES, Part, decode_part, parts, to_cut
from kraftwire.spark.captures.connections import may_be_called
from kraftwire.spark.captures.files import file_rows, unreadable_file
from kraftwire.spark.captures.packet_index import FileIndex, IndexedConnection, index_capture
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.paths import local_path, readable
from kraftwire.spark.run.inputs import InputFile, expanded, find_inputs
from kraftwire.spark.run.plan import capture_chains, capture_families
from kraftwire.spark.sources.filters import CaptureBounds, capture_bounds
from kraftwire.spark.sources.options import positive, pushes
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
    """Files of one recording, by path or with their indexes, and the connections to decode.

    Without an index, all connections of the files are decoded; `is_first` is true for the task with
    the rows about the files themselves. `part` is that of the one connection that was cut.
    """

    paths: tuple[str, ...]
    indexes: tuple[FileIndex, ...] = ()
    connections: tuple[int, ...] = ()
    is_first: bool = True
    part: Part | None = None


class _CapturePartition(InputPartition):
    """The input of one task."""

    def __init__(self, tasks: tuple[_Task, ...]) -> None:
        super().__init__(tasks)
        self.tasks = tasks


class CaptureSource(DataSource):
    """Captures as a table; see README.md for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "kafka-capture"

    def schema(self) -> StructType:
        """Return the columns of the requested table."""
        return find_table(_table(self.options)).spark

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the requested columns."""
        return _CaptureReader(self.options, schema)


class _CaptureReader(DataSourceReader):
    """Plans on the driver and reads in a task."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._table = _table(options)
        path = options.get("path")
        if not path:
            raise UsageError("kafka-capture needs a path: a file, a folder or a pattern")
        self._paths = [part for part in path.split(",") if part]
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
        made: list[InputPartition] = []
        tasks: list[_Task] = []
        size = 0
        for task, length in self._tasks():
            if tasks and size + length > self._split:
                made.append(_CapturePartition(tuple(tasks)))
                tasks, size = [], 0
            tasks.append(task)
            size += length
        # Without any partition, Spark would read one that does not exist.
        if tasks or not made:
            made.append(_CapturePartition(tuple(tasks)))
        return made

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, as Arrow batches that have exactly the schema."""
        assert isinstance(partition, _CapturePartition)
        target = to_arrow_schema(self._schema, timezone="UTC")
        with rare_collection():
            for task in partition.tasks:
                for batch in self._batches(task):
                    yield batch.select(target.names).cast(target)

    def _batches(self, task: _Task) -> Iterator[Any]:
        try:
            recording = Recording(task.indexes or [index_capture(path) for path in task.paths])
        except StorageError as error:
            yield from self._unreadable(task, error)
            return
        tables = Tables((self._table,), self._selection)
        if task.part is not None:
            for _, batch in decode_part(tables, recording, task.part):
                yield batch
        else:
            numbers = task.connections or self._wanted(recording)
            chosen = [recording.connections[number - 1] for number in numbers]
            for portion in bins(chosen, BIN_BYTES) if chosen else ():
                for _, batch in tables.bin(recording, [numbers[at - 1] for at in portion]):
                    yield batch
        if task.is_first:
            for name, about in file_rows(recording, tables.sums):
                tables.add(name, about)
        for _, batch in tables.take():
            yield batch

    def _apis(self) -> frozenset[int] | None:
        """Return the APIs whose frames are sufficient, None for all."""
        if self._table in TYPED_TABLES:
            return frozenset({typed_table(self._table).api_key})
        return self._bounds.apis if self._table in _BY_API else None

    def _unreadable(self, task: _Task, error: StorageError) -> Iterator[Any]:
        """Return the rows about a file that looked like a capture."""
        path = task.paths[0]
        # It may have been deleted since it was found.
        size = Path(path).stat().st_size if Path(path).exists() else 0
        tables = Tables((self._table,))
        for name, about in unreadable_file(readable(path), size, readable(str(error))):
            tables.add(name, about)
        for _, batch in tables.take():
            yield batch

    def _tasks(self) -> Iterator[tuple[_Task, int]]:
        """Yield every task with about how many bytes it reads."""
        for path in expanded(self._paths):
            if not path.exists():
                raise UsageError(f"{path}: no such file or folder")
        warnings: list[str] = []
        found = find_inputs(self._paths, warnings.append, None)
        # A file that cannot be read is a task too: it reports the problem.
        captures = [file for file in found if file.is_capture or not file.digest]
        if warnings and not captures:
            raise UsageError(warnings[0])
        _refuse_others(self._paths, captures)
        for family in capture_families(captures):
            if len(family) == 1 and family[0].size <= self._split:
                yield _Task((family[0].path,)), family[0].size
            else:
                yield from self._indexed(family)

    def _indexed(self, family: Sequence[InputFile]) -> Iterator[tuple[_Task, int]]:
        """Yield the tasks of captures that are rotated or large."""
        indexes = []
        for file in family:
            try:
                indexes.append(index_capture(file.path))
            except StorageError:
                yield _Task((file.path,)), file.size
        for chain in capture_chains(indexes):
            recording = Recording(chain)
            paths = tuple(index.path for index in chain)
            # A row of `files` covers the whole file.
            is_whole = self._table == "files" or any(index.has_fragments for index in chain)
            wanted = self._wanted(recording)
            cut = set() if is_whole else set(wanted) & set(to_cut(recording, self._cut))
            numbers = [number for number in wanted if number not in cut]
            chosen = [recording.connections[number - 1] for number in numbers]
            together = [list(range(1, len(chosen) + 1))]
            is_one = is_whole or not chosen
            for at, portion in enumerate(together if is_one else bins(chosen, self._split)):
                mine = tuple(numbers[each - 1] for each in portion)
                size = sum(recording.connections[number - 1].size for number in mine)
                if mine or self._table in _OF_FILES:
                    yield _Task(paths, recording.only(mine), mine, at == 0), size
            for number in sorted(cut):
                for part in self._parts(recording, number):
                    packets = recording.only((number,), part.span)
                    size = sum(sum(index.sizes) for index in packets)
                    yield _Task(paths, packets, (number,), False, part), size

    def _parts(self, recording: Recording, number: int) -> Iterator[Part]:
        """Yield the parts of a connection that is longer than a task."""
        return parts(recording, number, self._split, (self._table,), self._selection)

    @property
    def _cut(self) -> int:
        """Return the length from which a connection is worth a pass over it to cut it.

        A task that is twice as long as the others delays a query little.
        """
        return max(self._split, min(2 * self._split, CUT_BYTES))

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


def _refuse_others(names: Sequence[str], captures: Sequence[InputFile]) -> None:
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
