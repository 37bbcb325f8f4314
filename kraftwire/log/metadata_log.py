"""The replicated log on disk: append, flush, truncate, read.

A `MetadataLog` has one owner, which calls one method at a time; only `flush` may run in another
thread during `append` and `read`. After a failed write or sync every method that changes the log
raises that error again, because the contents of the disk are unknown (D9).

Source: Kafka's `UnifiedLog` and `KafkaRaftLog`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kraftwire.errors import InvariantError, StorageError, UsageError, check
from kraftwire.log.batches import HEAD, HEAD_SIZE, BatchList
from kraftwire.log.files import Files
from kraftwire.log.flush_mark import Mark, epochs_crc
from kraftwire.log.names import EPOCHS_FILE, QUORUM_STATE_FILE, join, partition_directory
from kraftwire.log.opening import Opened, open_directory
from kraftwire.log.partition_files import (
    EpochEntries,
    ensure_partition_metadata,
    epochs_from,
    remove_producer_snapshots,
    write_epochs,
    write_producer_snapshot,
)
from kraftwire.log.quorum_state import QuorumStateFile
from kraftwire.log.recovery import epochs_of
from kraftwire.log.segment import BatchFacts, Segment
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.records.header import CONTROL, LOG_OVERHEAD
from kraftwire.records.offsets import OffsetAndEpoch


class Health:
    """The first disk error of a log, or None; as a context manager, it watches for it.

    One object for all operations: every append and every flush enters it.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: StorageError | None = None

    def ensure(self) -> None:
        """Raise the error, if there was one."""
        if self.error is not None:
            raise self.error

    def __enter__(self) -> None:
        """Begin an operation."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, StorageError):
            self.error = error


_LOG = logging.getLogger(__name__)


class MetadataLog:
    """An open log; `open` returns one.

    It has the offsets from `start_offset` to below `end_offset`, durably those below
    `flushed_offset`. `start_offset` may lie inside a segment; after a restart it is the first
    segment's base (R-FILE-2).
    """

    def __init__(
        self, files: Files, directory: str, settings: LogSettings, opened: Opened
    ) -> None:
        found = opened.found
        self._files = files
        self._settings = settings
        self._segments = found.segments
        self._dirty: list[Segment] = []
        self._epochs: EpochEntries = epochs_of(found.segments)
        self._epochs_stored = list(found.epochs_stored or ())
        self._mark = opened.mark
        self._identity = opened.identity
        self._health = Health()
        self.directory = directory
        self.start_offset = found.segments[0].base_offset
        self.end_offset = found.segments[-1].end_offset
        self.flushed_offset = self.end_offset

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        settings: LogSettings,
        topic: str,
        topic_id: bytes,
        *,
        snapshots: SnapshotStore | None = None,
    ) -> MetadataLog:
        """Open or create the log of a topic in a log directory.

        The files are in the directory's subdirectory `<topic>-0`; `snapshots` is the store of that
        subdirectory, which the caller may use afterwards. A snapshot that is ahead of the log
        replaces it, as after a crash between download and reset (R-START-2).

        Order: hold the directory's lock. Raises: StorageError if flushed records are missing or
        damaged.
        """
        partition = partition_directory(directory, topic)
        store = snapshots or SnapshotStore(files, partition)
        if not files.exists(partition):
            files.mkdir(partition)
            files.fsync_dir(directory)
        ensure_partition_metadata(files, partition, topic_id)
        opened = open_directory(files, partition, settings, store, parent=directory)
        log = cls(files, partition, settings, opened)
        try:
            log._start(store.newest if opened.found.is_behind(store.newest) else None)
            QuorumStateFile(files, join(partition, QUORUM_STATE_FILE)).adopt()
            store.settle(log.start_offset)
        except StorageError:
            log._close_files()
            raise
        return log

    def _start(self, snapshot: OffsetAndEpoch | None) -> None:
        """Make the whole log durable, so that it counts as flushed; or start it at a snapshot that
        is ahead of it."""
        if snapshot is not None:
            _LOG.info("%s: snapshot %s replaces the log", self.directory, snapshot)
            self._reset(snapshot)
            return
        self._segments[-1].activate()
        self._files.fsync_dir(self.directory)
        self._store_epochs(self._epochs)
        self._mark.open(self._mark_at(self.end_offset))

    def _mark_at(self, end_offset: int) -> Mark:
        """Return the mark for a log that is durable up to this offset."""
        epochs = [entry for entry in self._epochs if entry[1] < end_offset]
        last = epochs[-1][0] if epochs else -1
        end = OffsetAndEpoch(end_offset, last)
        return Mark(end, self.start_offset, epochs_crc(epochs), self._identity)

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments, without their indexes."""
        return sum(segment.size for segment in self._segments)

    @property
    def newest_timestamp(self) -> int:
        """The largest timestamp of all batches, -1 without any."""
        return max(segment.max_timestamp for segment in self._segments)

    def batches(self) -> Sequence[OffsetAndEpoch]:
        """Base offset and leader epoch of every batch in order.

        The first ones may be below `start_offset`, in the segment that contains it.
        """
        return BatchList([segment.batches for segment in self._segments])

    def control(self) -> list[tuple[int, bytes]]:
        """(base offset, bytes) of every control batch in order."""
        return [
            (segment.batches.offset(number), segment.batch_bytes(number))
            for segment in self._segments
            for number in segment.batches.control
        ]

    def epochs(self) -> EpochEntries:
        """(epoch, start offset) of every leader epoch with a batch in the log.

        The epoch of the log's first record begins at `start_offset`.
        """
        return list(self._epochs)

    def append(self, data: bytes | memoryview, base_offset: int, end_offset: int) -> None:
        """Write whole batches at the log's end; durable only after `flush`.

        Raises: StorageError if the disk fails; InvariantError if the batches do not begin at
        `base_offset`, the log's end, do not end at `end_offset` or have gaps between them.
        """
        self._health.ensure()
        batches = _facts(data, self.end_offset)
        found = batches[-1].last_offset + 1 if batches else base_offset
        if base_offset != self.end_offset or found != end_offset:
            raise InvariantError(
                f"append of [{base_offset}, {end_offset}) with batches up to {found} "
                f"to a log that ends at {self.end_offset}"
            )
        with self._health:
            if len(data) <= self._settings.segment_bytes:
                self._append(data, batches)
            else:
                self._append_apart(data, batches)

    def _append_apart(self, data: bytes | memoryview, batches: Sequence[BatchFacts]) -> None:
        """Append batches one by one: together they exceed a segment."""
        view, position = memoryview(data), 0
        for batch in batches:
            self._append(view[position : position + batch.size], [batch])
            position += batch.size

    def _append(self, data: bytes | memoryview, batches: Sequence[BatchFacts]) -> None:
        if not batches:
            return
        segment = self._segments[-1]
        newest = max([batch.max_timestamp for batch in batches])
        if segment.must_roll(len(data), batches[-1].last_offset, newest):
            segment = self._roll()
        segment.append(data, batches)
        # After the write and before the new end: a flush in another thread clears the marks, and a
        # segment marked before its bytes were written would never be synced (D2).
        if segment not in self._dirty:
            self._dirty.append(segment)
        if not self._epochs or batches[-1].epoch > self._epochs[-1][0]:
            self._note_epochs(batches)
        self.end_offset = segment.end_offset

    def _note_epochs(self, batches: Sequence[BatchFacts]) -> None:
        for batch in batches:
            if not self._epochs or batch.epoch > self._epochs[-1][0]:
                # At the start of an emptied log the current epoch has no record.
                if self._epochs and self._epochs[-1][1] == batch.base_offset:
                    self._epochs.pop()
                self._epochs.append((batch.epoch, batch.base_offset))

    def _roll(self) -> Segment:
        """Begin a new segment; its name is durable before anything in it can be (D7).

        The old one is durable before that: a segment after a torn one would look like damage.
        """
        old = self._segments[-1]
        old.sync()
        old.deactivate()
        write_producer_snapshot(self._files, self.directory, self.end_offset)
        segment = Segment(self._files, self.directory, self.end_offset, self._settings)
        segment.activate()
        self._segments.append(segment)
        self._files.fsync_dir(self.directory)
        return segment

    def flush(self) -> int:
        """Make the log durable up to its current end; returns that offset.

        Raises: StorageError, fatal, if the disk fails.
        """
        self._health.ensure()
        # Take the end first: an append in between only adds to what is synced.
        end_offset = self.end_offset
        dirty, self._dirty = self._dirty, []
        epochs = [entry for entry in self._epochs if entry[1] < end_offset]
        with self._health:
            for segment in dirty:
                segment.sync()
            self._store_epochs(epochs)
            # Last, so that callers can rely on the mark once the flush returns (D11).
            if end_offset > self._mark.end_offset:
                self._mark.raise_to(self._mark_at(end_offset))
        self.flushed_offset = max(self.flushed_offset, end_offset)
        return end_offset

    def _store_epochs(self, epochs: EpochEntries) -> None:
        if epochs != self._epochs_stored:
            write_epochs(self._files, join(self.directory, EPOCHS_FILE), epochs)
            self._epochs_stored = epochs

    def truncate(self, end_offset: int) -> int:
        """Cut the log, durably, so that it ends at this offset; returns its end (D5).

        A batch that contains `end_offset` is removed as a whole, so the end may be lower. Raises:
        StorageError if the disk fails; InvariantError below the log's start.
        """
        self._health.ensure()
        check(
            end_offset >= self.start_offset,
            f"truncation to {end_offset}, below the log's start {self.start_offset}",
        )
        if end_offset < self.end_offset:
            with self._health:
                self._truncate(end_offset)
        return self.end_offset

    def _truncate(self, end_offset: int) -> None:
        """Lower mark and copies before truncating the log: it must never lack what they name."""
        segment = next(s for s in reversed(self._segments) if s.base_offset <= end_offset)
        if end_offset < segment.end_offset:
            number = segment.batches.containing(end_offset)
            end = segment.batches.offset(number)
        else:
            number, end = len(segment.batches), segment.end_offset
        self._epochs = [entry for entry in self._epochs if entry[1] < end]
        if end < self._mark.end_offset:
            self._mark.set(self._mark_at(end))
        self._store_epochs(list(self._epochs))
        remove_producer_snapshots(self._files, self.directory, above=end)
        while self._segments[-1] is not segment:
            self._segments.pop().remove()
        segment.cut(number)
        segment.activate()
        self._dirty = [dirty for dirty in self._dirty if dirty in self._segments]
        self.end_offset = segment.end_offset
        self.flushed_offset = min(self.flushed_offset, self.end_offset)

    def reset(self, start: OffsetAndEpoch) -> None:
        """Empty the log, durably, so that it starts and ends where a snapshot ends (R-FSN-4).

        A crash halfway leaves a prefix of the old log, which the snapshot replaces at the next
        start. Order: that snapshot is durable. Raises: StorageError if the disk fails.
        """
        self._health.ensure()
        with self._health:
            self._reset(start)

    def _reset(self, start: OffsetAndEpoch) -> None:
        self._mark.set(Mark(start, start.offset, epochs_crc(()), self._identity))
        self._epochs = []
        self._store_epochs([])
        remove_producer_snapshots(self._files, self.directory)
        while self._segments:
            self._segments.pop().remove()
        self._dirty = []
        segment = Segment(self._files, self.directory, start.offset, self._settings)
        segment.activate()
        self._segments.append(segment)
        self._files.fsync_dir(self.directory)
        self.start_offset = self.end_offset = self.flushed_offset = start.offset

    def drop_prefix(self, start_offset: int) -> None:
        """Advance the log start offset; segments that lie wholly below it go (R-SNAP-6).

        The oldest is removed first, each durably before the next, but never the active one. Order:
        a snapshot that ends at or above the offset is durable. Raises: StorageError if the disk
        fails; InvariantError for an offset outside the log.
        """
        self._health.ensure()
        check(
            self.start_offset <= start_offset <= self.end_offset,
            f"the log from {self.start_offset} to {self.end_offset} cannot start at {start_offset}",
        )
        if self._mark.end_offset < start_offset:
            # Nothing that remains may depend on a flush that a crash could undo.
            self.flush()
        self.start_offset = start_offset
        self._epochs = epochs_from(self._epochs, start_offset)
        segments = self._segments
        with self._health:
            self._mark.set(self._mark_at(self._mark.end_offset))
            while len(segments) > 1 and segments[0].end_offset <= start_offset:
                segments.pop(0).remove()
            remove_producer_snapshots(self._files, self.directory, below=segments[0].base_offset)
            self._store_epochs([entry for entry in self._epochs if entry[1] < self.flushed_offset])
        self._dirty = [dirty for dirty in self._dirty if dirty in segments]

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches of one segment, starting with the one that contains `offset`.

        At most `max_bytes` but at least the first batch, nothing at or above `end_offset`;
        empty if there is nothing. Raises: UsageError below the log's start; StorageError.
        """
        if offset < self.start_offset:
            raise UsageError(f"offset {offset} is below the log's start {self.start_offset}")
        if offset >= min(end_offset, self.end_offset):
            return b""
        return self._segment_with(offset).read(offset, max_bytes, end_offset)

    def read_size(self, offset: int, max_bytes: int, end_offset: int) -> int:
        """Return how many bytes `read` would return; 0 if it would raise."""
        if self.start_offset <= offset < min(end_offset, self.end_offset):
            return self._segment_with(offset).read_size(offset, max_bytes, end_offset)
        return 0

    def _segment_with(self, offset: int) -> Segment:
        return next(s for s in reversed(self._segments) if s.base_offset <= offset)

    def close(self) -> None:
        """Flush, trim the indexes, and close all files."""
        if self._health.error is None:
            self.flush()
            self._segments[-1].deactivate()
            if self.end_offset:
                write_producer_snapshot(self._files, self.directory, self.end_offset)
        self._close_files()
        self._health.error = StorageError("the log is closed", file=self.directory)

    def _close_files(self) -> None:
        for segment in self._segments:
            segment.close()
        self._mark.close()


def _facts(data: bytes | memoryview, offset: int) -> list[BatchFacts]:
    """Read the headers of whole batches, which must follow one another without gaps."""
    batches = []
    position, size = 0, len(data)
    while position < size:
        if position + HEAD_SIZE > size:
            raise InvariantError(f"{size - position} bytes are not a batch")
        base, length, epoch, _, _, attributes, delta, _, timestamp = HEAD.unpack_from(
            data, position
        )
        if base != offset or not 0 < length <= size - position - LOG_OVERHEAD:
            raise InvariantError(
                f"a batch of {length} bytes at offset {base} where {size - position} bytes "
                f"are left and offset {offset} should begin"
            )
        offset = base + delta + 1
        length += LOG_OVERHEAD
        is_control = bool(attributes & CONTROL)
        batches.append(BatchFacts(base, offset - 1, epoch, timestamp, length, is_control))
        position += length
    return batches
