"""The connections of a capture that one of several readers decodes; the others take the rest.

Every reader sees all packets, so they agree on whose a connection is without a word. What a reader
finds must not depend on connections of others: where it might, the reader gives up with
`NotShared`, and the capture has to be read by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized

from kraftwire.decode.capture.links import Segment
from kraftwire.decode.framing.health import Health
from kraftwire.decode.pairing.connection import Connection, Direction, reverse_key
from kraftwire.decode.pairing.holdings import Holdings
from kraftwire.decode.pairing.outbox import Budget, Outbox
from kraftwire.decode.tcp.streams import PASSED_OVER
from kraftwire.errors import KraftwireError
from kraftwire.limits import (
    BUFFERED_BYTES_MAX,
    CLOSED_CONNECTIONS_MAX,
    CONNECTIONS_MAX,
)

__all__ = ["AT_END", "NotShared", "Share"]

# Frames that the end of the capture completes come after all positions in it.
AT_END = 1 << 48


class NotShared(KraftwireError):
    """Several readers of the capture might find something else than one."""


class Share:
    """The part of a capture that the reader with the number `index`, of `count` in all, decodes.

    `owners` has the numbers of readers by the keys of directions; of other connections each reader
    in turn gets one.
    `foreign` stands for each direction of another reader in the table of directions. `position` is
    the one after the packet in hand. `marks` says of each frame in the outbox where the packet ends
    with which it was passed on: in this order the frames of all readers are those of one.
    """

    def __init__(self, index: int, count: int, owners: Mapping[bytes, int]) -> None:
        self.count = count
        self.foreign = Connection(bytes(12), Outbox(Health())).flows[0]
        self.foreign.fast_seq = PASSED_OVER
        self.budget = _Budget(count)
        self.position = 0
        self.marks: list[int] = []
        self._index = index
        self._is_own = {key: owner == index for key, owner in owners.items()}
        self._opened: dict[Connection, int] = {}

    def takes(self, segment: Segment, flows: dict[bytes, Direction]) -> bool:
        """Whether a segment is for this reader; else the fast lanes will pass over its direction.

        Order: for each segment outside the fast lane.
        """
        (_, _, self.position), key = segment[:2]
        is_own = self._is_for_me(key)
        if not is_own:
            flows[key] = flows[reverse_key(key)] = self.foreign
        return is_own

    def check(self, health: Health, holdings: Holdings, packed: int) -> None:
        """Give up where what is found depends on the connections of other readers."""
        if health.tls_connections:
            raise NotShared("connections are encrypted")
        if not holdings.has_room(self.count, packed):
            raise NotShared("connections hold too much")

    def _is_for_me(self, key: bytes) -> bool:
        is_own = self._is_own.get(key)
        if is_own is None:
            number = len(self._is_own) // 2
            if number >= CONNECTIONS_MAX:
                raise NotShared("there are too many connections")
            is_own = number % self.count == self._index
            self._is_own[key] = self._is_own[reverse_key(key)] = is_own
        return is_own

    def mark(self, frames: Sized, position: int) -> None:
        """Note where the new frames were passed on."""
        self.marks += [position] * (len(frames) - len(self.marks))

    def take(self) -> list[int]:
        """Return the marks of the frames that were taken from the outbox."""
        marks, self.marks[:] = self.marks[:], []
        return marks

    def note_open(self, connection: Connection, open_count: int) -> None:
        """Note where a connection begins, and how many are open."""
        if open_count * self.count > CONNECTIONS_MAX:
            raise NotShared("many connections are open at once")
        self._opened[connection] = self.position

    def note_closed(self, connection: Connection, closed_count: int) -> None:
        """Note that a connection is over, and how many of these are remembered."""
        if closed_count * self.count > CLOSED_CONNECTIONS_MAX:
            raise NotShared("many connections are over")
        self._opened.pop(connection, None)

    def end_of(self, connection: Connection) -> int:
        """Return the mark of frames that the end of the capture completes."""
        return AT_END + self._opened[connection]


class _Budget(Budget):
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
