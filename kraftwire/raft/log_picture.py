"""What a Raft core knows of its log: offsets, batch borders and leader epochs, no records.

Owns the questions that a fetch asks of a log (is this position mine, where did an epoch end, which
batch holds an offset) and the end up to which the log is durable. Knows no files.

Source: Kafka's `KafkaRaftLog`, `LeaderEpochFileCache` and `ValidOffsetAndEpoch`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from kraftwire.errors import InvariantError
from kraftwire.raft.ports import LogImage

__all__ = ["LogPicture", "Position", "PositionKind"]


class PositionKind(Enum):
    """What a leader makes of a fetch position."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class Position(NamedTuple):
    """The judgement on a fetch position.

    Shape: epoch and end offset are those of DivergingEpoch or of SnapshotId, -1 if it is valid.
    """

    kind: PositionKind
    epoch: int = -1
    end_offset: int = -1


_VALID = Position(PositionKind.VALID)


class LogPicture:
    """The log as its owner last changed it.

    Shape: `snapshot` is (end offset, epoch) of the newest one, or None; `last_epoch` is that of
    R-START-5; `flushed_offset` is where the durable part ends, which its owner moves on.
    """

    __slots__ = (
        "_bases",
        "_epochs",
        "_serves_snapshots",
        "_starts",
        "end_offset",
        "flushed_offset",
        "last_epoch",
        "snapshot",
        "start_offset",
    )

    def __init__(self, image: LogImage, *, serves_snapshots: bool = False) -> None:
        """Start from the log as found on disk.

        Shape: with `serves_snapshots` a fetch is sent to the snapshot wherever Kafka does that,
        without it only where the log itself cannot serve.
        """
        self.start_offset = image.start_offset
        self.end_offset = image.start_offset
        self.flushed_offset = image.end_offset
        self.snapshot = image.snapshot
        self._serves_snapshots = serves_snapshots
        self._bases = array("q")
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.last_epoch = self._last_epoch()
        self.append(image.batches, image.end_offset)

    @property
    def registered_epochs(self) -> tuple[tuple[int, int], ...]:
        """(Epoch, start offset) of every epoch known in the log. Order: ascending."""
        return tuple(zip(self._epochs, self._starts, strict=True))

    def append(self, batches: Sequence[tuple[int, int]], end_offset: int) -> None:
        """Note appended batches, (base offset, epoch) each, behind which the log ends.

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
        """Note where an epoch begins (R-FET-9); forgets what is not older and begins below.

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
        """Cut the log to whole batches that end here at the latest; returns its new end.

        Epochs that begin at the end or behind it are forgotten even where no batch is cut: a
        leader may have registered one without writing anything (R-FET-9).
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

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """(Epoch, end offset) of the newest epoch not above this one (R-FET-8)."""
        epochs = self._epochs
        if not epochs or epoch >= epochs[-1]:
            return self.last_epoch, self.end_offset
        index = bisect_right(epochs, epoch)
        if not index:
            return epoch, self._starts[0]
        return epochs[index - 1], self._starts[index]

    def batch_base(self, offset: int) -> int:
        """The base offset of the batch that contains an offset (R-FET-11).

        Shape: an offset at the log's end, or outside the log, is returned as it is.
        """
        if offset >= self.end_offset:
            return offset
        index = bisect_right(self._bases, offset)
        return self._bases[index - 1] if index else offset

    def check_position(self, offset: int, epoch: int) -> Position:
        """Whether a follower at this offset, with this epoch before it, has our log (R-FET-7).

        Shape: only the newest snapshot is known here, and stands for the oldest as well; where
        that may be wrong the follower is sent to the newest, which is always right to load.
        """
        # Nearly every fetch is at the end of the newest epoch.
        if offset == self.end_offset and epoch == self.last_epoch and offset > self.start_offset:
            return _VALID
        if self._needs_snapshot(offset, epoch):
            end, snapshot_epoch = self.snapshot or (self.start_offset, self.last_epoch)
            return Position(PositionKind.SNAPSHOT, snapshot_epoch, end)
        if not offset:
            return _VALID
        own, end = self.end_of_epoch(epoch)
        if own != epoch or end < offset:
            return Position(PositionKind.DIVERGING, own, end)
        return _VALID

    def truncation_offset(self, epoch: int, end_offset: int) -> int:
        """Where to cut after a leader's DivergingEpoch (R-FET-20), at a border between batches."""
        own, end = self.end_of_epoch(epoch)
        if not epoch:
            end = min(end_offset, self.end_offset)
        elif own == epoch:
            end = min(end, end_offset)
        return self.batch_base(max(end, self.start_offset))

    def _needs_snapshot(self, offset: int, epoch: int) -> bool:
        start, snapshot = self.start_offset, self.snapshot
        if not start:
            if not (self._serves_snapshots and snapshot):
                return False
            return not offset or epoch < snapshot[1]
        if offset < start or snapshot is None:
            return offset <= start
        if offset == start:
            return (start, epoch) != snapshot
        return snapshot[0] == start and epoch < snapshot[1]

    def _last_epoch(self) -> int:
        if self._epochs:
            return self._epochs[-1]
        # Differs from Kafka, which ends if a snapshot is not where the empty log begins: claiming
        # its epoch can only refuse votes, never grant a wrong one.
        return self.snapshot[1] if self.snapshot else 0
