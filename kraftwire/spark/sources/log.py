"""`format("kafka-log")`: segments and snapshots of log directories as a table.

Planning lists files, cuts long segments between batches and leaves out what filters exclude; a
task decodes ranges of files to Arrow batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from kraftwire.errors import UsageError
from kraftwire.spark.logs.decode import LogOptions, decode_pieces
from kraftwire.spark.logs.listing import LogFile, list_files
from kraftwire.spark.logs.plan import SPLIT_BYTES, plan
from kraftwire.spark.logs.transactions import Transactions, transactions_of
from kraftwire.spark.sources.filters import Bounds, bounds_of
from kraftwire.spark.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

__all__ = ["LogSource"]

_TABLES = ("records", "batches", "metadata_records", "bad_input", "files")
_ISOLATIONS = ("raw", "committed")

# Rows of one Arrow batch: the JVM holds a whole one, best in its processor's cache.
_ROWS = 8192

_UNCUT = 2**63


@dataclass(frozen=True)
class _Range:
    """Bytes of a file, or all of it where `end` is None."""

    file: str
    start: int
    end: int | None
    transactions: Transactions | None


class _LogPartition(InputPartition):
    """The ranges of one task."""

    def __init__(self, ranges: tuple[_Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class LogSource(DataSource):
    """Log files as a table; the README of this folder has the options."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "kafka-log"

    def schema(self) -> StructType:
        """The columns of the table that is asked for."""
        return TABLES[_choice(self.options, "table", _TABLES)].spark

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns that are asked for."""
        return _LogReader(self.options, schema)


class _LogReader(DataSourceReader):
    """Plans on the driver and reads in a task."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._table = _choice(options, "table", _TABLES)
        self._paths = _paths(options)
        self._is_committed = _choice(options, "isolation", _ISOLATIONS) == "committed"
        self._with_snapshots = _flag(options, "snapshots", default=True)
        self._show_secrets = _flag(options, "showSecrets", default=False)
        self._split = int(options.get("splitBytes", SPLIT_BYTES))
        self._rows = int(options.get("batchRows", _ROWS))
        self._schema = schema
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note what saves reading; Spark evaluates every filter all the same."""
        self._bounds = bounds_of(filters, "time" if self._table == "metadata_records" else None)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Tasks of about `splitBytes`, small files together."""
        tasks: list[InputPartition] = []
        ranges: list[_Range] = []
        size = 0
        for one, length in self._ranges():
            if ranges and size + length > self._split:
                tasks.append(_LogPartition(tuple(ranges)))
                ranges, size = [], 0
            ranges.append(one)
            size += length
        if ranges or not tasks:
            tasks.append(_LogPartition(tuple(ranges)))
        return tasks

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a task, as Arrow batches."""
        assert isinstance(partition, _LogPartition)
        target = to_arrow_schema(self._schema, timezone="UTC")
        for one in partition.ranges:
            options = LogOptions(
                tables=frozenset({self._table}),
                show_secrets=self._show_secrets,
                choice=self._bounds.choice(one.transactions),
            )
            for tables in decode_pieces(one.file, options, one.start, one.end):
                table = tables.get(self._table)
                if table is not None and len(table):
                    yield from table.select(target.names).cast(target).to_batches(self._rows)

    def _ranges(self) -> Iterator[tuple[_Range, int]]:
        """Every range with its length."""
        known: dict[str, Transactions] = {}
        for file in list_files(self._paths, with_snapshots=self._with_snapshots):
            if not self._is_wanted(file):
                continue
            transactions = Transactions() if self._is_committed else None
            if self._is_committed and file.is_segment:
                folder = str(file.path.parent)
                if folder not in known:
                    known[folder] = transactions_of(file.path.parent)
                transactions = known[folder]
            # A row of `files` is about a range, so a file must be one.
            split = _UNCUT if self._table == "files" else self._split
            for start, end in plan(file.path, split):
                yield _Range(str(file.path), start, end, transactions), end - start

    def _is_wanted(self, file: LogFile) -> bool:
        if self._table in ("bad_input", "files"):
            return True
        bounds = self._bounds
        if not _may_be(file.topic, bounds.topics) or not _may_be(file.partition, bounds.partitions):
            return False
        if not file.is_segment:
            return True
        is_before = file.next_offset is not None and file.next_offset <= bounds.offset_min
        return not is_before and (file.base_offset or 0) <= bounds.offset_max


def _may_be(value: Any, values: frozenset[Any] | None) -> bool:
    """Whether a file whose topic or partition is None or known may hold one of some values."""
    return value is None or values is None or value in values


def _paths(options: Any) -> list[str]:
    path = options.get("path")
    if not path:
        raise UsageError("kafka-log needs a path: a file, a folder or a pattern")
    return [part for part in path.split(",") if part]


def _choice(options: Any, name: str, choices: tuple[str, ...]) -> str:
    value = str(options.get(name, choices[0]))
    if value not in choices:
        raise UsageError(f"option {name}: expected one of {', '.join(choices)}, found {value!r}")
    return value


def _flag(options: Any, name: str, *, default: bool) -> bool:
    value = str(options.get(name, default)).lower()
    if value not in ("true", "false"):
        raise UsageError(f"option {name}: expected true or false, found {value!r}")
    return value == "true"
