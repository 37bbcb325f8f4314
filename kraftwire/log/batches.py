"""A segment's batches in memory: arrays of a few bytes each, one entry per batch.

Shape of an entry: base offset relative to the segment, byte position, leader epoch. A metadata log
of idle no-op records has a batch every 72 bytes, too many for an object each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from kraftwire.records.header import fields
from kraftwire.records.offsets import OffsetAndEpoch

# The header up to its largest timestamp.
HEAD = fields(
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
)
HEAD_SIZE = HEAD.size


class BatchArrays:
    """The batches of one segment in order. Offsets and positions strictly increase."""

    __slots__ = ("base_offset", "control", "epochs", "offsets", "positions")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.offsets = array("i")
        self.positions = array("i")
        self.epochs = array("i")
        # Numbers of the control batches: there are few.
        self.control = array("i")

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: int, position: int, epoch: int, is_control: bool) -> None:
        """Record a batch at the end. `offset` is its base offset."""
        if is_control:
            self.control.append(len(self.offsets))
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)
        self.epochs.append(epoch)

    def containing(self, offset: int) -> int:
        """Return the number of the batch that contains an offset; one must."""
        return bisect_right(self.offsets, offset - self.base_offset) - 1

    def at(self, position: int) -> int:
        """Return the number of the last batch that begins at or before a byte position, -1 if
        none."""
        return bisect_right(self.positions, position) - 1

    def offset(self, number: int) -> int:
        """The base offset of a batch."""
        return self.base_offset + self.offsets[number]

    def cut(self, count: int) -> None:
        """Keep only the first `count` batches."""
        del self.offsets[count:], self.positions[count:], self.epochs[count:]
        while self.control and self.control[-1] >= count:
            self.control.pop()


class BatchList(Sequence[OffsetAndEpoch]):
    """Base offset and leader epoch of every batch of several segments, created on demand.

    A view, which follows the log until the next roll or truncation.
    """

    def __init__(self, parts: Sequence[BatchArrays]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[OffsetAndEpoch]:
        for part in self._parts:
            base = part.base_offset
            for offset, epoch in zip(part.offsets, part.epochs, strict=True):
                yield OffsetAndEpoch(base + offset, epoch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as lists have none

    @overload
    def __getitem__(self, index: int) -> OffsetAndEpoch: ...

    @overload
    def __getitem__(self, index: slice) -> list[OffsetAndEpoch]: ...

    def __getitem__(self, index: int | slice) -> OffsetAndEpoch | list[OffsetAndEpoch]:
        if isinstance(index, slice):
            return list(self)[index]
        if index < 0:
            index += len(self)
        for part in self._parts:
            if 0 <= index < len(part):
                return OffsetAndEpoch(part.offset(index), part.epochs[index])
            index -= len(part)
        raise IndexError("no such batch")
