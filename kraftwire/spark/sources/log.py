"""`format("kafka-log")`: segments and snapshots of log directories as a table.

Planning lists files, cuts long segments between batches and skips what filters exclude; a task
decodes ranges of files to Arrow batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from kraftwire.spark.logs.place import LogFile, list_files
from kraftwire.spark.logs.plan import plan
from kraftwire.spark.logs.transactions import Transactions, transactions_of
from kraftwire.spark.sources.filters import Bounds, bounds_of
from kraftwire.spark.sources.input_paths import InputPaths
from kraftwire.spark.sources.log_stream import LogStreamReader
from kraftwire.spark.sources.options import (
    TABLE_CHOICES,
    LogRows,
    by_size,
    check_log_options,
    check_stream_options,
    chosen,
    pushes,
)
from kraftwire.spark.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

_ISOLATIONS = ("raw", "committed")

_UNCUT = 2**63


@dataclass(frozen=True)
class _Range:
    """A range of a file, or all of it if `end` is None."""

    file: str
    start: int
    end: int | None
    transactions: Transactions | None


class LogDataSource(DataSource):
    """Log files as a table; see README.md for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "kafka-log"

    def schema(self) -> StructType:
        """Return the columns of the requested table."""
        check_log_options(self.options)
        check_stream_options(self.options)
        table = TABLES[chosen(self.options, "table", TABLE_CHOICES)]
        return InputPaths(self.options, self.name()).all_columns(table.spark)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the requested columns."""
        return _LogReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of what is in folders and is added to them."""
        return LogStreamReader(self.options, schema)


class _LogReader(LogRows, DataSourceReader):
    """Plans on the driver and reads in a task."""

    def __init__(self, options: Any, schema: StructType) -> None:
        super().__init__(options, schema)
        self._is_committed = chosen(options, "isolation", _ISOLATIONS) == "committed"
        self._pushes = pushes(options)
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note the filters that save reading; Spark evaluates every filter anyway."""
        if self._pushes:
            self._bounds = bounds_of(filters, "time" if self.table == "metadata_records" else None)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Return tasks of about `splitBytes`, with small files combined."""
        return [InputPartition(group) for group in by_size(self._ranges(), self.split)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, as Arrow batches."""
        for one in partition.value:
            batch_filter = self._bounds.batch_filter(one.transactions)
            yield from self.rows(one.file, one.start, one.end, batch_filter)

    def _ranges(self) -> Iterator[tuple[_Range, int]]:
        """Yield every range with its length."""
        known: dict[str, Transactions] = {}
        self.paths.require()
        for file in list_files(
            self.paths.names, with_snapshots=self.with_snapshots, pattern=self.paths.pattern
        ):
            if not self._is_wanted(file):
                continue
            transactions = Transactions() if self._is_committed else None
            if self._is_committed and file.is_segment:
                folder = str(file.path.parent)
                if folder not in known:
                    known[folder] = transactions_of(file.path.parent)
                transactions = known[folder]
            # A row of `files` is about a range, so a file must not be cut.
            split = _UNCUT if self.table == "files" else self.split
            for start, end in plan(file.path, split):
                yield _Range(str(file.path), start, end, transactions), end - start

    def _is_wanted(self, file: LogFile) -> bool:
        if self.table in ("bad_input", "files"):
            return True
        bounds = self._bounds
        if not _may_be(file.topic, bounds.topics) or not _may_be(file.partition, bounds.partitions):
            return False
        if not file.is_segment:
            return True
        is_before = file.next_offset is not None and file.next_offset <= bounds.offset_min
        return not is_before and (file.base_offset or 0) <= bounds.offset_max


def _may_be(value: Any, values: frozenset[Any] | None) -> bool:
    """Whether a file whose topic or partition is known, or None, may hold one of some values."""
    return value is None or values is None or value in values
