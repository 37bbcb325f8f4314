"""Bytes that wait until it is known where frames begin in them.

Owns the borders of packets, which are evidence, and the holes between them, which are kept as
zeros: no frame begins in zeros, but one may reach across.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from kraftwire.capture.limits import PIECE_OBJECT_BYTES
from kraftwire.capture.packets.packet import Stamp
from kraftwire.limits import UNCONFIRMED_FRAME_SIZE_MAX

__all__ = ["DATA", "TRUNCATED", "FirstOnly", "Pieces"]

# The kinds of bytes that the buffer may hold from a mark on.
DATA = 0
GAP = 1
TRUNCATED = 2


class FirstOnly(list[bytes]):
    """The pieces of a frame of which only the first is kept."""

    def append(self, _: bytes, /) -> None:
        """Drop a piece."""


class Pieces:
    """The bytes of consecutive packets with their stamps.

    `starts` are the positions in `buffer` at which packets begin. `dropped` counts the
    captured bytes that were forgotten, without holes.
    """

    __slots__ = ("_kinds", "_marks", "_stamps", "buffer", "dropped", "starts")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.starts: list[int] = []
        self._marks: list[int] = []
        self.dropped = 0
        self._stamps: list[Stamp] = []
        self._kinds: list[int] = []

    @property
    def held_bytes(self) -> int:
        """Roughly the memory that the pieces take. Units: bytes."""
        return len(self.buffer) + len(self._marks) * PIECE_OBJECT_BYTES

    def add(self, data: bytes, stamp: Stamp) -> None:
        """Append the bytes of a packet."""
        self.starts.append(len(self.buffer))
        self._mark(stamp, DATA)
        self.buffer += data

    def add_hole(self, count: int, stamp: Stamp, *, truncated: bool) -> bool:
        """Append missing bytes; False if they are too many for a frame to reach across."""
        if count > UNCONFIRMED_FRAME_SIZE_MAX:
            return False
        self._mark(stamp, TRUNCATED if truncated else GAP)
        self.buffer += bytes(count)
        return True

    def _mark(self, stamp: Stamp, kind: int) -> None:
        self._marks.append(len(self.buffer))
        self._stamps.append(stamp)
        self._kinds.append(kind)

    def is_border(self, at: int) -> bool:
        """Whether a packet begins or the last one ends here."""
        if at == len(self.buffer):
            return True
        index = bisect_left(self.starts, at)
        return index < len(self.starts) and self.starts[index] == at

    def drop(self, count: int) -> None:
        """Forget the first bytes."""
        self.dropped += self.captured(count)
        del self.buffer[:count]
        first = max(0, bisect_left(self._marks, count + 1) - 1)
        self._marks = [max(0, mark - count) for mark in self._marks[first:]]
        self._stamps = self._stamps[first:]
        self._kinds = self._kinds[first:]
        self.starts = [start - count for start in self.starts if start >= count]

    def holes(self, before: int) -> Iterator[tuple[int, bool]]:
        """Yield the holes before a position: length, and whether a packet was truncated."""
        for mark, end, kind in zip(self._marks, self._ends(), self._kinds, strict=True):
            if kind != DATA and mark < before:
                yield min(end, before) - mark, kind == TRUNCATED

    def captured(self, before: int) -> int:
        """Return how many bytes before a position are not holes."""
        return before - sum(size for size, _ in self.holes(before))

    def split(self, at: int) -> Iterator[tuple[bytes, Stamp, int]]:
        """Yield the bytes from a position on by packets: data, stamp, and kind of hole or `DATA`.

        The data of a hole are zeros, as many as are missing.
        """
        for index, (mark, end) in enumerate(zip(self._marks, self._ends(), strict=True)):
            if end > at:
                data = bytes(self.buffer[max(mark, at) : end])
                yield data, self._stamps[index], self._kinds[index]

    def _ends(self) -> list[int]:
        return [*self._marks[1:], len(self.buffer)] if self._marks else []
