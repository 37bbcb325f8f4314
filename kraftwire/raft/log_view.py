"""A Raft core's view of its log: offsets, batch boundaries, leader epochs, snapshots.

Checks fetch positions (does this log have the position, where did an epoch end, which batch
contains an offset, which snapshot precedes it) and tracks the durable end. It has no records and
knows no files.

Source: Kafka's `KafkaRaftLog`, `LeaderEpochFileCache` and `ValidOffsetAndEpoch`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from kraftwire.errors import InvariantError
from kraftwire.raft.ports import LogImage
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch


class PositionKind(Enum):
    """A leader's verdict on a fetch position."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class Position(NamedTuple):
    """The result of a check of a fetch position; `at` goes into DivergingEpoch or SnapshotId."""

    kind: PositionKind
    at: OffsetAndEpoch = OffsetAndEpoch(-1, -1)


_VALID = Position(PositionKind.VALID)


class LogView:
    """The log as its owner last changed it.

    `last_epoch` is that of R-START-5; `flushed_offset` is the end of the durable part, which the
    owner advances. Snapshots are known by id, with their sizes in bytes; the bootstrap checkpoint
    0-0 is not among them. `largest_snapshot` is the size of the largest one so far.
    """

    __slots__ = (
        "_bases",
        "_epochs",
        "_sizes",
        "_starts",
        "end_offset",
        "flushed_offset",
        "largest_snapshot",
        "last_epoch",
        "snapshots",
        "start_offset",
    )

    def __init__(self, image: LogImage) -> None:
        """Start from the log found on disk."""
        self.start_offset = image.start_offset
        self.end_offset = image.start_offset
        self.flushed_offset = image.end_offset
        self._sizes: dict[OffsetAndEpoch, int] = {}
        self.largest_snapshot = 0
        self.snapshots: list[OffsetAndEpoch] = []
        for stored in image.snapshots:
            if stored.id != BOOTSTRAP_SNAPSHOT:
                self.add_snapshot(stored.id, stored.size)
        self._bases = array("q")
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.last_epoch = self._last_epoch()
        self.append(image.batches, image.end_offset)

    @property
    def end(self) -> OffsetAndEpoch:
        """Log end offset and last epoch: what votes compare."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        """The newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def registered_epochs(self) -> tuple[OffsetAndEpoch, ...]:
        """Every epoch known in the log, with its start offset. Order: ascending."""
        return tuple(map(OffsetAndEpoch, self._starts, self._epochs))

    # ---- snapshots

    def add_snapshot(self, snapshot: OffsetAndEpoch, size: int) -> None:
        """Record a durable snapshot file. Units: bytes."""
        if snapshot not in self._sizes:
            self.snapshots.insert(bisect_left(self.snapshots, snapshot), snapshot)
        self._sizes[snapshot] = size
        self.largest_snapshot = max(self.largest_snapshot, size)

    def snapshot_size(self, snapshot: OffsetAndEpoch) -> int | None:
        """Return the size of a snapshot file, None if there is none with this id."""
        return self._sizes.get(snapshot)

    def forget_snapshots(self, gone: Iterable[OffsetAndEpoch]) -> None:
        """Record that these are deleted."""
        for snapshot in gone:
            self._sizes.pop(snapshot, None)
        self.snapshots = [one for one in self.snapshots if one in self._sizes]

    def raise_start(self, start_offset: int) -> None:
        """Forget what is below an offset (R-SNAP-6); the epoch at the offset now starts there."""
        keep = max(bisect_right(self._starts, start_offset) - 1, 0)
        del self._starts[:keep], self._epochs[:keep]
        if self._starts and self._starts[0] < start_offset:
            self._starts[0] = start_offset
        # Keep the batch that contains the start, so that it can be found.
        first = max(bisect_right(self._bases, start_offset) - 1, 0)
        del self._bases[:first]
        self.start_offset = start_offset
        self.last_epoch = self._last_epoch()

    def reset(self, start: OffsetAndEpoch) -> None:
        """Empty the log: it starts and ends where a snapshot ends (R-FSN-4)."""
        del self._bases[:], self._epochs[:], self._starts[:]
        self.start_offset = self.end_offset = self.flushed_offset = start.offset
        self.forget_snapshots([one for one in self.snapshots if one < start])
        self.last_epoch = start.epoch

    # ---- batches

    def append(self, batches: Sequence[OffsetAndEpoch], end_offset: int) -> None:
        """Record appended batches and the new log end offset.

        Raises: InvariantError if they do not continue the log.
        """
        first = batches[0][0] if batches else end_offset
        if not self.end_offset <= first <= end_offset:
            raise InvariantError(
                f"batches from {first} to {end_offset} do not continue a log that "
                f"ends at {self.end_offset}"
            )
        add = self._bases.append
        last = self._epochs[-1] if self._epochs else -1
        for base, epoch in batches:
            add(base)
            if epoch != last:
                self.register_epoch(epoch, base)
                last = epoch
        self.end_offset = end_offset

    def register_epoch(self, epoch: int, offset: int) -> None:
        """Record where an epoch begins (R-FET-9); forgets entries that are not older but begin
        before.

        A new leader does this at its log's end, before its first record.
        """
        epochs, starts = self._epochs, self._starts
        while epochs and (epochs[-1] >= epoch or starts[-1] >= offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(offset)
        self.last_epoch = epoch

    def truncate(self, end_offset: int) -> int:
        """Truncate the log to whole batches that end at or before this offset; returns its new end.

        Epochs that begin at or after the end are forgotten even if no batch is removed: a leader
        may have registered one without writing anything (R-FET-9).
        """
        end = min(self.batch_base(max(end_offset, self.start_offset)), self.end_offset)
        bases, starts = self._bases, self._starts
        del bases[bisect_left(bases, end) :]
        keep = bisect_left(starts, end)
        del starts[keep:], self._epochs[keep:]
        self.end_offset = end
        self.flushed_offset = min(self.flushed_offset, end)
        self.last_epoch = self._last_epoch()
        return end

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the newest epoch not above this one, and its end offset (R-FET-8)."""
        epochs = self._epochs
        if not epochs or epoch >= epochs[-1]:
            return self.end
        index = bisect_right(epochs, epoch)
        if not index:
            return OffsetAndEpoch(self._starts[0], epoch)
        return OffsetAndEpoch(self._starts[index], epochs[index - 1])

    def epoch_before(self, offset: int) -> int:
        """Return the epoch of the record before an offset, which a snapshot with that end offset
        has."""
        index = bisect_left(self._starts, offset)
        if index:
            return self._epochs[index - 1]
        return next((one.epoch for one in reversed(self.snapshots) if one.offset <= offset), 0)

    def batch_base(self, offset: int) -> int:
        """Return the base offset of the batch that contains an offset (R-FET-11).

        An offset at the log's end, or outside the log, is returned unchanged.
        """
        if offset >= self.end_offset:
            return offset
        index = bisect_right(self._bases, offset)
        return self._bases[index - 1] if index else offset

    # ---- positions

    def check_position(self, offset: int, epoch: int) -> Position:
        """Check whether a follower at this offset, with this epoch before it, has this log
        (R-FET-7)."""
        # Fast path: nearly every fetch is in the newest epoch.
        if offset == self.end_offset and epoch == self.last_epoch and offset > self.start_offset:
            return _VALID
        newest = self.latest_snapshot
        if newest is not None and (not offset or self._needs_snapshot(offset, epoch)):
            return Position(PositionKind.SNAPSHOT, newest)
        if not offset:
            return _VALID
        own = self.end_of_epoch(epoch)
        if own.epoch != epoch or own.offset < offset:
            return Position(PositionKind.DIVERGING, own)
        return _VALID

    def truncation_offset(self, diverging: OffsetAndEpoch) -> int:
        """Return where to truncate after a leader's DivergingEpoch (R-FET-20), at a batch
        boundary."""
        own = self.end_of_epoch(diverging.epoch)
        end = own.offset
        if not diverging.epoch:
            end = min(diverging.offset, self.end_offset)
        elif own.epoch == diverging.epoch:
            end = min(end, diverging.offset)
        return self.batch_base(max(end, self.start_offset))

    def _needs_snapshot(self, offset: int, epoch: int) -> bool:
        """Return whether a follower at this position needs a snapshot (R-FET-7)."""
        start, oldest = self.start_offset, self.snapshots[0]
        if offset < start or epoch < oldest.epoch:
            return True
        return offset == start and epoch != oldest.epoch

    def _last_epoch(self) -> int:
        if self._epochs:
            return self._epochs[-1]
        # Differs from Kafka, which ends if no snapshot ends where the empty log begins: using the
        # newest one's epoch can only refuse votes, never grant a wrong one.
        return self.snapshots[-1].epoch if self.snapshots else 0
