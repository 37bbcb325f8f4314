"""Bytes that wait until it is known where frames begin in them.

Owns the borders of packets, which are evidence, and the holes between them, which are kept as
zeros: no frame begins in zeros, but one may reach across.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from kraftwire.limits import UNCONFIRMED_FRAME_SIZE_MAX

__all__ = ["DATA", "TRUNCATED", "Pieces"]

# What stands in the buffer from a mark on.
DATA = 0
GAP = 1
TRUNCATED = 2


class Pieces:
    """The bytes of consecutive packets with their times.

    Shape: `starts` are the positions in `buffer` at which packets begin.
    """

    __slots__ = ("_kinds", "_marks", "_times", "buffer", "starts")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.starts: list[int] = []
        self._marks: list[int] = []
        self._times: list[int] = []
        self._kinds: list[int] = []

    def add(self, data: bytes, time_ns: int) -> None:
        """Append the bytes of a packet."""
        self.starts.append(len(self.buffer))
        self._mark(time_ns, DATA)
        self.buffer += data

    def add_hole(self, count: int, time_ns: int, *, truncated: bool) -> bool:
        """Append missing bytes; False if they are too many for a frame to reach across."""
        if count > UNCONFIRMED_FRAME_SIZE_MAX:
            return False
        self._mark(time_ns, TRUNCATED if truncated else GAP)
        self.buffer += bytes(count)
        return True

    def _mark(self, time_ns: int, kind: int) -> None:
        self._marks.append(len(self.buffer))
        self._times.append(time_ns)
        self._kinds.append(kind)

    def is_border(self, at: int) -> bool:
        """Whether a packet begins or the last one ends here."""
        if at == len(self.buffer):
            return True
        index = bisect_left(self.starts, at)
        return index < len(self.starts) and self.starts[index] == at

    def drop(self, count: int) -> None:
        """Forget the first bytes."""
        del self.buffer[:count]
        first = max(0, bisect_left(self._marks, count + 1) - 1)
        self._marks = [max(0, mark - count) for mark in self._marks[first:]]
        self._times = self._times[first:]
        self._kinds = self._kinds[first:]
        self.starts = [start - count for start in self.starts if start >= count]

    def holes(self, before: int) -> Iterator[tuple[int, bool]]:
        """Length, and whether a packet was truncated, of the holes before a position."""
        for mark, end, kind in zip(self._marks, self._ends(), self._kinds, strict=True):
            if kind != DATA and mark < before:
                yield min(end, before) - mark, kind == TRUNCATED

    def split(self, at: int) -> Iterator[tuple[bytes, int, int]]:
        """The bytes from a position on, packet by packet: data, time, and kind of hole or `DATA`.

        Shape: the data of a hole are zeros, as many as are missing.
        """
        for index, (mark, end) in enumerate(zip(self._marks, self._ends(), strict=True)):
            if end > at:
                data = bytes(self.buffer[max(mark, at) : end])
                yield data, self._times[index], self._kinds[index]

    def _ends(self) -> list[int]:
        return [*self._marks[1:], len(self.buffer)] if self._marks else []
