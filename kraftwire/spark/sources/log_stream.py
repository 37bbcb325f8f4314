"""`readStream.format("kafka-log")`: folders of partitions as they grow.

An offset of the stream holds, for each folder, the last batch that was read: the offset after it,
its leader epoch and CRC, and its position.
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
from kraftwire.spark.sources.options import (
    LogRows,
    by_size,
    chosen,
    flag,
    offsets_max,
    read_limit,
    starts_late,
)
from kraftwire.spark.tail import (
    FolderEnd,
    Offset,
    Stretch,
    TriggerLimits,
    between,
    bounds_of,
    end_of,
    find_folders,
    following,
    verify,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_Range = tuple[Stretch, int, int]


class LogStreamReader(LogRows, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows every partition under some paths."""

    def __init__(self, options: Any, schema: StructType) -> None:
        super().__init__(options, schema)
        if self.table == "files":
            raise UsageError("option table: files is about whole files, and a stream has none")
        if chosen(options, "isolation", ("raw", "committed")) == "committed":
            raise UsageError(
                "option isolation: a stream of files is raw; use a batch read for committed"
            )
        self.paths.refuse_pattern("a stream follows folders")
        self._is_late = starts_late(options)
        self._offsets_max = offsets_max(options)
        self._fails_on_loss = flag(options, "failOnDataLoss", default=True)
        self._bounds: Mapping[str, FolderEnd | None] | None = None
        self._snapshots: Mapping[str, Sequence[str]] | None = None

    def initialOffset(self) -> Offset:
        """Return the start of all folders, or their end."""
        if not self._is_late:
            return {"folders": {}}
        return end_of(self._folders(), with_snapshots=self.with_snapshots)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return `maxOffsetsPerTrigger`, or no limit."""
        return read_limit(self._offsets_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """Record where all folders end now."""
        self._bounds, self._snapshots = bounds_of(self._folders())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the offset after the last whole batch, or after what the limit allows.

        Raises: LogMovedError if what was read is gone or has changed.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        limits = TriggerLimits(
            most, self._bounds, self._snapshots, self.with_snapshots, self._fails_on_loss
        )
        return following(self._folders(), start, limits)

    def reportLatestOffset(self) -> Offset | None:
        """Return nothing: every trigger calls `latestOffset`."""
        return None

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return tasks of about `splitBytes`."""
        return [InputPartition(group) for group in by_size(self._ranges(start, end), self.split)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, as Arrow batches."""
        for stretch, start, end in partition.value:
            yield from self.rows(stretch.path, start, end, None)
            verify(stretch)

    def commit(self, end: Offset) -> None:
        """Do nothing: no state is kept."""

    def stop(self) -> None:
        """Do nothing: no file stays open."""

    def _folders(self) -> list[Path]:
        return find_folders(self.paths.names)

    def _ranges(self, start: Offset, end: Offset) -> Iterator[tuple[_Range, int]]:
        for stretch in between(start, end):
            for first, last in plan(stretch.path, self.split, stretch.start, stretch.end):
                yield (stretch, first, last), last - first
