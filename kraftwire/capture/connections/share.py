"""A capture of which other processes read some stretches: what its reader must know and check.

What is found must not depend on who read what. Where it might, the reader gives up with
`NotShared`, and the capture has to be read by one.
"""

from __future__ import annotations

from collections.abc import Sized

from kraftwire.capture.connections.connection import Connection, Direction
from kraftwire.capture.connections.frame_queue import Budget
from kraftwire.capture.connections.memory_budget import Holdings
from kraftwire.capture.packets.links import Segment
from kraftwire.errors import KraftwireError
from kraftwire.limits import BUFFERED_BYTES_MAX

__all__ = ["AT_END", "NotShared", "Share", "ShareOfBudget"]

# Frames that the end of the capture completes come after all positions in it.
AT_END = 1 << 48


class NotShared(KraftwireError):
    """Several readers of the capture might find something else than one."""


class Share:
    """What the reader of a capture reports on its way; `count` processes read in all.

    `place` is the position after the last packet that was looked at. `marks` says of each frame in
    the outbox where the packet ends with which it was passed on: in this order the frames of all
    readers are those of one. `reviewed` are the places where connections were found in trouble.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.budget = ShareOfBudget(count)
        self.place = 0
        self.marks: list[int] = []
        self.reviewed: dict[Connection, int] = {}
        self._opened: dict[Connection, int] = {}

    def takes(self, segment: Segment, _flows: dict[bytes, Direction], /) -> bool:
        """Whether a segment is decoded here. Order: for each segment outside the fast lane."""
        self.place = segment[0][2]
        return True

    def check(self, holdings: Holdings, packed: int) -> None:
        """Give up where memory gets short, since connections then lose what they hold."""
        if not holdings.has_room(self.count, packed):
            raise NotShared("connections hold too much")

    def mark(self, frames: Sized, place: int) -> None:
        """Note where the new frames were passed on."""
        self.place = place
        self.marks += [place] * (len(frames) - len(self.marks))

    def take(self) -> list[int]:
        """Return the marks of the frames that were taken from the outbox."""
        marks, self.marks[:] = self.marks[:], []
        return marks

    def note_open(self, connection: Connection, _open_count: int, /) -> None:
        """Note where a connection begins, and how many are open."""
        self._opened[connection] = self.place

    def note_closed(self, connection: Connection) -> None:
        """Note that a connection is over."""
        self._opened.pop(connection, None)
        self.reviewed.pop(connection, None)

    def note_trouble(self, connection: Connection, place: int) -> None:
        """Note where a connection was reviewed in which something is open still."""
        self.reviewed[connection] = place

    def note_review(self, place: int, time_ns: int) -> None:
        """Note where connections in trouble are looked at."""

    def end_of(self, connection: Connection) -> int:
        """Return the mark of frames that the end of the capture completes."""
        return AT_END + self._opened[connection]


class ShareOfBudget(Budget):
    """The share of a reader in the memory for long frames."""

    __slots__ = ("_limit",)

    def __init__(self, count: int) -> None:
        super().__init__()
        self._limit = BUFFERED_BYTES_MAX // count

    def take(self, size: int) -> bool:
        """Reserve memory for a frame of this size."""
        if self._used + size > self._limit:
            raise NotShared("long frames take too much memory")
        return super().take(size)
