"""`format("kraft-metadata")`: the metadata log of a live quorum, as a table and as a stream.

An offset of the stream is ``{epoch, nextOffset}``: where reading resumes, and the epoch of the
record before. That of the first batch also names the snapshot that it began with, so that the batch
can be repeated after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kraftwire.client.metadata_log import Position, QuorumReader, SnapshotId
from kraftwire.client.security import client_security
from kraftwire.errors import LogMovedError, UsageError
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.spark.quorum import log_rows, snapshot_rows
from kraftwire.spark.sources.filters import Bounds, bounds_of
from kraftwire.spark.sources.options import (
    check_stream_options,
    offsets_max,
    pushes,
    read_limit,
    security_of,
    starts_late,
)
from kraftwire.spark.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

MetadataOffset = dict[str, int]

# Keys of the first offset, if a snapshot comes before the log.
_SNAPSHOT_END, _SNAPSHOT_EPOCH = "snapshotEndOffset", "snapshotEpoch"


class MetadataDataSource(DataSource):
    """A live metadata log; see README.md for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "kraft-metadata"

    def schema(self) -> StructType:
        """Return the columns of `metadata_records`."""
        check_stream_options(self.options)
        _bootstrap(self.options)
        client_security(security_of(self.options))
        return TABLES["metadata_records"].spark

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of what is committed now."""
        return _BatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of what is and will be committed."""
        return _StreamReader(self.options, schema)


class _Rows:
    """How a task reads, for both readers; can be pickled."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._bootstrap = _bootstrap(options)
        self._security = security_of(options)
        self._schema = schema

    def _reader(self) -> QuorumReader:
        return QuorumReader(self._bootstrap, security=self._security)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task, as Arrow batches."""
        target = to_arrow_schema(self._schema, timezone="UTC")
        start, end, snapshot = partition.value
        with self._reader() as reader:
            if snapshot is not None:
                for table in snapshot_rows(reader, snapshot):
                    yield from table.select(target.names).cast(target).to_batches()
            for table in log_rows(reader, start, end):
                yield from table.select(target.names).cast(target).to_batches()


class _BatchReader(_Rows, DataSourceReader):
    """Reads the newest snapshot, if the log does not begin at 0, and the log up to its end."""

    def __init__(self, options: Any, schema: StructType) -> None:
        super().__init__(options, schema)
        self._pushes = pushes(options)
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Note the requested offsets; Spark evaluates every filter anyway."""
        if self._pushes:
            self._bounds = bounds_of(filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Return one task, since a log is ordered."""
        with self._reader() as reader:
            start, snapshot = reader.begin()
            end = max(reader.high_watermark(start), start.next_offset)
            # The records of a snapshot have their own offsets, so it is read in any case.
            first = min(max(self._bounds.offset_min, start.next_offset), end)
            last = min(max(self._bounds.offset_max + 1, first), end)
            if first > start.next_offset:
                start = Position(reader.epoch_before(first), first)
            reached = Position(reader.epoch_before(last), last)
            return [InputPartition((start, reached, snapshot))]


class _StreamReader(_Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the high watermark."""

    def __init__(self, options: Any, schema: StructType) -> None:
        super().__init__(options, schema)
        self._is_late = starts_late(options)
        self._offsets_max = offsets_max(options)
        self._target: int | None = None

    def initialOffset(self) -> MetadataOffset:
        """Return offset 0, or the high watermark."""
        if not self._is_late:
            return _offset(Position(0, 0))
        with self._reader() as reader:
            start, _ = reader.begin()
            end = max(reader.high_watermark(start), start.next_offset)
            return _offset(Position(reader.epoch_before(end), end))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return `maxOffsetsPerTrigger`, or no limit."""
        return read_limit(self._offsets_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """Record where the log ends now."""
        with self._reader() as reader:
            start, _ = reader.begin()
            self._target = max(reader.high_watermark(start), start.next_offset)

    def latestOffset(self, start: MetadataOffset, limit: ReadLimit) -> MetadataOffset:
        """Return the high watermark, or the offset that the limit allows.

        Raises: LogMovedError if the log was truncated or now begins after `start`.
        """
        position, snapshot = _position(start), None
        with self._reader() as reader:
            if position.next_offset == 0:
                # If the log does not begin at 0, its newest snapshot replaces the part that is
                # gone.
                position, snapshot = reader.begin()
            end = reader.high_watermark(position)
            if self._target is not None:
                end = min(end, self._target)
            if isinstance(limit, ReadMaxRows):
                end = min(end, position.next_offset + limit.max_rows)
            end = max(end, position.next_offset)
            if end == start["nextOffset"]:
                return start
            reached = _offset(Position(reader.epoch_before(end), end))
        if snapshot is not None:
            reached |= {_SNAPSHOT_END: snapshot.end_offset, _SNAPSHOT_EPOCH: snapshot.epoch}
        return reached

    def reportLatestOffset(self) -> MetadataOffset | None:
        """Return nothing: every trigger calls `latestOffset`."""
        return None

    def partitions(self, start: MetadataOffset, end: MetadataOffset) -> Sequence[InputPartition]:
        """Return one task for the records between two offsets."""
        first, snapshot = _position(start), None
        if first.next_offset == 0 and _SNAPSHOT_END in end:
            snapshot = SnapshotId(end[_SNAPSHOT_END], end[_SNAPSHOT_EPOCH])
            first = Position(snapshot.epoch, snapshot.end_offset)
        last = _position(end)
        if last.next_offset < first.next_offset:
            raise LogMovedError(
                f"asked to go back from offset {first.next_offset} to {last.next_offset}",
                file=METADATA_TOPIC,
            )
        return [InputPartition((first, last, snapshot))]

    def commit(self, end: MetadataOffset) -> None:
        """Do nothing: no state is kept."""

    def stop(self) -> None:
        """Do nothing: no connection outlives a call."""


def _bootstrap(options: Any) -> str:
    """Return the addresses of controllers. Raises: UsageError if there are none."""
    found = options.get("bootstrapControllers")
    if not found:
        raise UsageError("kraft-metadata needs the option bootstrapControllers: host:port,...")
    return str(found)


def _offset(position: Position) -> MetadataOffset:
    return {"epoch": position.epoch, "nextOffset": position.next_offset}


def _position(offset: MetadataOffset) -> Position:
    return Position(offset["epoch"], offset["nextOffset"])
