"""`readStream.format("kafka-log")`: folders of partitions as they grow.

An offset of the stream has for each folder the last batch that was read: the offset after it, its
leader epoch and CRC, and where it lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kraftwire.errors import UsageError
from kraftwire.spark.logs.plan import plan
from kraftwire.spark.sources.log_options import LogRows, by_size, chosen, flag
from kraftwire.spark.sources.stream_options import offsets_max, read_limit, starts_late
from kraftwire.spark.tail import (
    Bound,
    Limits,
    Offset,
    Stretch,
    between,
    bounds_of,
    end_of,
    find_folders,
    following,
    verify,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["LogStreamReader"]

_Range = tuple[Stretch, int, int]


class _TailPartition(InputPartition):
    """What one task reads: ranges of stretches."""

    def __init__(self, ranges: tuple[_Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class LogStreamReader(LogRows, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows every partition under some paths."""

    def __init__(self, options: Any, schema: StructType) -> None:
        super().__init__(options, schema)
        if self.table == "files":
            raise UsageError("table files is about whole files: a stream has none")
        if chosen(options, "isolation", ("raw", "committed")) == "committed":
            raise UsageError(
                "option isolation: a stream of files is raw; read committed as a batch"
            )
        self._is_late = starts_late(options)
        self._offsets_max = offsets_max(options)
        self._fails_on_loss = flag(options, "failOnDataLoss", default=True)
        self._bounds: Mapping[str, Bound | None] | None = None
        self._snapshots: Mapping[str, Sequence[str]] | None = None

    def initialOffset(self) -> Offset:
        """The beginning of everything, or its end."""
        if not self._is_late:
            return {"folders": {}}
        return end_of(self._folders(), with_snapshots=self.with_snapshots)

    def getDefaultReadLimit(self) -> ReadLimit:
        """`maxOffsetsPerTrigger`, or no limit."""
        return read_limit(self._offsets_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note where all folders end now."""
        self._bounds, self._snapshots = bounds_of(self._folders())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As far as whole batches go, or as the limit lets.

        Raises: LogMovedError if what was read is not there any more as it was.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        limits = Limits(
            most, self._bounds, self._snapshots, self.with_snapshots, self._fails_on_loss
        )
        return following(self._folders(), start, limits)

    def reportLatestOffset(self) -> Offset | None:
        """Nothing: every trigger asks anyway."""
        return None

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Tasks of about `splitBytes`."""
        return [_TailPartition(group) for group in by_size(self._ranges(start, end), self.split)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a task, as Arrow batches."""
        assert isinstance(partition, _TailPartition)
        for stretch, start, end in partition.ranges:
            yield from self.rows(stretch.path, start, end, None)
            verify(stretch)

    def commit(self, end: Offset) -> None:
        """Nothing is kept for what was not read."""

    def stop(self) -> None:
        """No file stays open."""

    def _folders(self) -> list[Path]:
        return find_folders(self.paths)

    def _ranges(self, start: Offset, end: Offset) -> Iterator[tuple[_Range, int]]:
        for stretch in between(start, end):
            for first, last in plan(stretch.path, self.split, stretch.start, stretch.end):
                yield (stretch, first, last), last - first
