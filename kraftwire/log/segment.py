"""One segment of a log: its file, its batches, its two indexes, and its last appends in memory.

Source: Kafka's `LogSegment`; index entries are exactly where Kafka writes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kraftwire.log.batches import HEAD, HEAD_SIZE, BatchArrays
from kraftwire.log.files import Files
from kraftwire.log.index import OFFSET_ENTRY, TIME_ENTRY, Index
from kraftwire.log.names import join, offset_name
from kraftwire.log.scan import SegmentScan, scan_segment
from kraftwire.log.settings import LogSettings

# A log keeps its last appends in memory, up to this size and number: two of the longest batches,
# and what an idle leader writes in ten seconds.
RECENT_APPENDS_BYTES = 16 * 1024 * 1024
RECENT_APPENDS_MAX = 20


class RecentAppends:
    """A few appends by position, the oldest evicted first. Units: bytes."""

    __slots__ = ("_kept", "_size")

    def __init__(self) -> None:
        self._kept: deque[tuple[int, bytes]] = deque()
        self._size = 0

    def add(self, position: int, data: bytes | memoryview) -> None:
        """Keep bytes that have been written at a position, which follows all earlier ones.

        A view is not kept, because it would hold all of the memory that it is a part of; it evicts
        older appends all the same.
        """
        kept = data if type(data) is bytes else b""
        self._kept.append((position, kept))
        self._size += len(kept)
        while self._size > RECENT_APPENDS_BYTES or len(self._kept) > RECENT_APPENDS_MAX:
            self._size -= len(self._kept.popleft()[1])

    def find(self, start: int, stop: int) -> bytes | None:
        """Return the append with exactly this range of positions, None if it is not kept."""
        for position, data in reversed(self._kept):
            if position <= start:
                return data if position == start and position + len(data) == stop else None
        return None

    def clear(self) -> None:
        """Forget all appends, because the file is truncated."""
        self._kept.clear()
        self._size = 0


SUFFIXES = ("log", "index", "timeindex")

_OFFSET_DELTA_MAX = 0x7FFFFFFF
_NO_TIMESTAMP = -1


class BatchFacts(NamedTuple):
    """The header of an appended batch as a segment records it. Units: `size` in bytes."""

    base_offset: int
    last_offset: int
    epoch: int
    max_timestamp: int
    size: int
    is_control: bool


class Segment:
    """An open segment.

    Order: `load` before anything else unless the files are new; `activate` before `append`.
    """

    def __init__(
        self, files: Files, directory: str, base_offset: int, settings: LogSettings
    ) -> None:
        """Open the three files, creating those that are missing."""
        self._settings = settings
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size = 0
        self.batches = BatchArrays(base_offset)
        self.first_timestamp = _NO_TIMESTAMP
        self.max_timestamp = _NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self._unindexed = 0
        self._recent = RecentAppends()
        paths = [join(directory, offset_name(base_offset, suffix)) for suffix in SUFFIXES]
        self.path = paths[0]
        log, offsets, times = (files.open(path, create=True) for path in paths)
        self.file = log
        self.offsets = Index(offsets, OFFSET_ENTRY, settings.index_bytes)
        self.times = Index(times, TIME_ENTRY, settings.index_bytes)

    def load(self, last_epoch: int) -> SegmentScan:
        """Read the log file; batches after damage are ignored."""
        scan = scan_segment(self.file, self.base_offset, last_epoch)
        self._take(scan)
        return scan

    def _take(self, scan: SegmentScan) -> None:
        self.batches = scan.batches
        self.end_offset, self.size = scan.end_offset, scan.size
        self.max_timestamp = scan.max_timestamp
        self.max_timestamp_offset = scan.max_timestamp_offset
        self.first_timestamp = self._head(0)[8] if len(self.batches) else _NO_TIMESTAMP

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last batch, -1 without one."""
        return self.batches.epochs[-1] if len(self.batches) else -1

    def must_roll(self, size: int, last_offset: int, max_timestamp: int) -> bool:
        """Return whether batches of this size, last offset and largest timestamp need a new one.

        An empty segment accepts any batch, since its successor would have the same name.
        """
        if not self.size:
            return False
        if self.size > self._settings.segment_bytes - size:
            return True
        # Kafka uses the clock if the first batch has no timestamp; the quorum's batches have one.
        waited = max_timestamp - self.first_timestamp if self.first_timestamp >= 0 else 0
        if waited > self._settings.segment_ms:
            return True
        if self.offsets.is_full or self.times.is_full:
            return True
        return last_offset - self.base_offset > _OFFSET_DELTA_MAX

    def append(self, data: bytes | memoryview, batches: Sequence[BatchFacts]) -> None:
        """Write whole batches after the last one. `batches` describes them in order."""
        self.file.pwrite(data, self.size)
        self._recent.add(self.size, data)
        if not len(self.batches):
            self.first_timestamp = batches[0].max_timestamp
        size, unindexed = self.size, self._unindexed
        for base_offset, last_offset, epoch, timestamp, length, is_control in batches:
            if timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = timestamp, last_offset
            if unindexed > self._settings.index_interval_bytes:
                self.offsets.append(last_offset - self.base_offset, size)
                self._index_time()
                unindexed = 0
            self.batches.add(base_offset, size, epoch, is_control)
            size += length
            unindexed += length
        self.size, self._unindexed = size, unindexed
        self.end_offset = batches[-1].last_offset + 1

    def _index_time(self) -> None:
        last = self.times.last
        if self.max_timestamp > (last[0] if last else _NO_TIMESTAMP):
            self.times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches, at least one, starting with the one that contains `offset`."""
        start, stop = self._span(offset, max_bytes, end_offset)
        if stop <= start:
            return b""
        return self._recent.find(start, stop) or self.file.pread(stop - start, start)

    def read_size(self, offset: int, max_bytes: int, end_offset: int) -> int:
        """Return how many bytes `read` would return."""
        start, stop = self._span(offset, max_bytes, end_offset)
        return stop - start

    def _span(self, offset: int, max_bytes: int, end_offset: int) -> tuple[int, int]:
        """Return the range of the file to read."""
        batches = self.batches
        first = batches.containing(offset)
        start = batches.positions[first]
        stop = self.size
        if end_offset < self.end_offset:
            last = batches.containing(end_offset)
            stop = batches.positions[last]
        if stop - start > max_bytes:
            last = max(batches.at(start + max_bytes), first + 1)
            stop = batches.positions[last] if last < len(batches) else self.size
        return start, max(stop, start)

    def batch_bytes(self, number: int) -> bytes:
        """Return the bytes of one batch."""
        positions = self.batches.positions
        end = positions[number + 1] if number + 1 < len(positions) else self.size
        return self.file.pread(end - positions[number], positions[number])

    def activate(self) -> None:
        """Preallocate the indexes."""
        self.offsets.extend()
        self.times.extend()

    def sync(self) -> None:
        """Make the log file durable, then write the index entries that point into it.

        Order: may run in another thread during `append`, so what to index is decided first.
        """
        offsets, times = self.offsets.count, self.times.count
        self.file.fdatasync()
        self.offsets.write(offsets)
        self.times.write(times)

    def deactivate(self) -> None:
        """Record the largest timestamp and trim the indexes.

        Order: after `sync`.
        """
        self._index_time()
        self.offsets.write(self.offsets.count)
        self.times.write(self.times.count)
        self.offsets.trim()
        self.times.trim()

    def cut(self, count: int) -> None:
        """Truncate the segment to its first `count` batches, durably.

        Order: the indexes first, or after a crash they would show that records are missing.
        """
        batches = self.batches
        if count >= len(batches):
            return
        self._recent.clear()
        end = batches.offsets[count]
        self.offsets.cut(end, 0)
        self.times.cut(end, 1)
        self.size = batches.positions[count]
        self.end_offset = batches.offset(count)
        self.file.truncate(self.size)
        self.file.fdatasync()
        batches.cut(count)
        self._unindexed = 0
        self._find_largest_timestamp()

    def _find_largest_timestamp(self) -> None:
        """Find it after the last entry of the time index, which holds the largest so far."""
        largest, offset = self.times.last or (_NO_TIMESTAMP, 0)
        first = max(self.batches.containing(self.base_offset + offset), 0)
        for position in self.batches.positions[first:]:
            head = self._head(position)
            if head[8] > largest:
                largest, offset = head[8], head[0] + head[6] - self.base_offset
        self.max_timestamp, self.max_timestamp_offset = largest, self.base_offset + offset
        if not len(self.batches):
            self.first_timestamp = _NO_TIMESTAMP

    def _head(self, position: int) -> tuple[int, ...]:
        return HEAD.unpack(self.file.pread(HEAD_SIZE, position))

    def check_indexes(self) -> bool:
        """Adopt the stored index entries if they match the log, else rebuild them.

        Returns whether they match, and are present where they must be.
        """
        offsets, times = self.offsets.stored(), self.times.stored()
        last = self.batches.positions[-1] if len(self.batches) else 0
        is_lost = not offsets and last > self._settings.index_interval_bytes
        good_offsets, good_times = self._true_offsets(offsets), self._true_times(times)
        if not is_lost and good_offsets == len(offsets) and good_times == len(times):
            self.offsets.adopt(offsets)
            self.times.adopt(times)
            return True
        self._rebuild_indexes()
        return False

    def _true_offsets(self, entries: Sequence[tuple[int, int]]) -> int:
        """Return how many leading entries of the offset index match the log."""
        batches, end = self.batches, self.end_offset - self.base_offset
        before = (-1, -1)
        for number, (offset, position) in enumerate(entries):
            batch = batches.at(position)
            if batch < 0 or batches.positions[batch] != position or position >= self.size:
                return number
            if not before[0] < offset < end or position <= before[1]:
                return number
            if offset < batches.offsets[batch]:
                return number
            before = offset, position
        return len(entries)

    def _true_times(self, entries: Sequence[tuple[int, int]]) -> int:
        """Return how many leading entries of the time index match the log."""
        end = self.end_offset - self.base_offset
        before = (_NO_TIMESTAMP, -1)
        for number, (timestamp, offset) in enumerate(entries):
            if not 0 <= offset < end or timestamp <= before[0] or offset < before[1]:
                return number
            position = self.batches.positions[
                self.batches.containing(self.base_offset + offset)
            ]
            if self._head(position)[8] != timestamp:
                return number
            before = timestamp, offset
        return len(entries)

    def _rebuild_indexes(self) -> None:
        """Create the entries that Kafka's recovery would create."""
        offsets: list[tuple[int, int]] = []
        times: list[tuple[int, int]] = []
        unindexed, largest, largest_offset = 0, _NO_TIMESTAMP, 0
        positions = self.batches.positions
        for position, end in pairwise((*positions, self.size)):
            head = self._head(position)
            last, timestamp = head[0] + head[6] - self.base_offset, head[8]
            if timestamp > largest:
                largest, largest_offset = timestamp, last
            if unindexed > self._settings.index_interval_bytes:
                offsets.append((last, position))
                if largest > (times[-1][0] if times else _NO_TIMESTAMP):
                    times.append((largest, largest_offset))
                unindexed = 0
            unindexed += end - position
        if largest > (times[-1][0] if times else _NO_TIMESTAMP):
            times.append((largest, largest_offset))
        self.offsets.rewrite(offsets)
        self.times.rewrite(times)

    def remove(self) -> None:
        """Close the segment and remove its files, durably, before a neighbour may be removed."""
        self.close()
        for suffix in SUFFIXES:
            self._files.unlink(join(self.directory, offset_name(self.base_offset, suffix)))
        self._files.fsync_dir(self.directory)

    def close(self) -> None:
        """Close the files as they are."""
        self.file.close()
        self.offsets.close()
        self.times.close()
