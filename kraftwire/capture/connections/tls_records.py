"""The records of one direction of a TLS connection, cut out of its bytes, across holes.

Source: RFC 8446, section 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kraftwire.capture.packets.packet import NO_STAMP, Stamp

CHANGE_CIPHER, HANDSHAKE, TEXT = 20, 22, 23
HEAD_SIZE = 5
_KINDS = range(20, 25)
_FIRST_KINDS = range(20, 24)
_RECORD_SIZE_MAX = 16_384 + 2048
# After a hole that hides where records begin, the next record is searched for in this many bytes.
_SEARCH_BYTES_MAX = 256 * 1024


def is_tls(data: bytes | bytearray) -> bool:
    """Whether a direction starts with a TLS record."""
    return len(data) >= HEAD_SIZE and data[0] in _FIRST_KINDS and bool(_record_size(data, 0))


class TlsRecord(NamedTuple):
    """A record: its head, what follows that, and how many bytes of it are missing (zeros)."""

    head: bytes
    body: bytes
    stamp: Stamp
    missing: int = 0

    @property
    def kind(self) -> int:
        """The kind that the head names."""
        return self.head[0]

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return HEAD_SIZE + len(self.body)


class TlsRecords:
    """Cuts the bytes of a direction into records.

    `lost` counts the bytes since the last record after a hole that hides where the next one begins,
    up to those that are held; it is -1 while records follow each other.
    """

    __slots__ = ("_begin", "_buffer", "_missing", "lost")

    def __init__(self) -> None:
        self.lost = -1
        self._buffer = bytearray()
        self._begin = NO_STAMP[1]
        self._missing = 0

    @property
    def held_bytes(self) -> int:
        """The bytes of a record that is not complete."""
        return len(self._buffer)

    @property
    def is_broken(self) -> bool:
        """Whether what comes next is no record."""
        return len(self._buffer) >= HEAD_SIZE and not _record_size(self._buffer, 0)

    @property
    def is_searched_enough(self) -> bool:
        """Whether a record would have been found again, if there were one."""
        return len(self._buffer) > _SEARCH_BYTES_MAX

    def add(self, data: bytes, start: int, end: int, stamp: Stamp) -> None:
        """Add bytes in order."""
        if not self._buffer:
            self._begin = stamp[1]
        self._buffer += data[start:end]

    def next(self, stamp: Stamp) -> TlsRecord | None:
        """Return the next record, which a packet has completed; None before all of it has come."""
        buffer = self._buffer
        size = _record_size(buffer, 0) if len(buffer) >= HEAD_SIZE else 0
        if not size or len(buffer) < size:
            return None
        whole = bytes(buffer[:size])
        del buffer[:size]
        at = stamp[0], self._begin, stamp[2]
        self._begin = stamp[1]
        missing, self._missing = self._missing, 0
        return TlsRecord(whole[:HEAD_SIZE], whole[HEAD_SIZE:], at, missing)

    def fill_record(self, count: int) -> int:
        """Put missing bytes into the record that has begun; returns how many come after it."""
        buffer = self._buffer
        size = _record_size(buffer, 0) if len(buffer) >= HEAD_SIZE else 0
        inside = min(count, size - len(buffer)) if size else 0
        buffer += bytes(inside)
        self._missing += inside
        return count - inside

    def lose_start(self, count: int) -> int:
        """Go on after missing bytes that hide where records begin; returns how many captured bytes
        are dropped with them.
        """
        dropped = len(self._buffer)
        self.lost = max(self.lost, 0) + count + dropped
        self._buffer.clear()
        return dropped

    def candidates(self) -> Iterator[tuple[int, TlsRecord]]:
        """Yield what may be records of text after a hole, with the place of each."""
        buffer = self._buffer
        for at in range(len(buffer) - HEAD_SIZE + 1):
            size = _record_size(buffer, at) if buffer[at] == TEXT else 0
            if size and len(buffer) - at >= size:
                head, body = bytes(buffer[at : at + 5]), bytes(buffer[at + 5 : at + size])
                yield at, TlsRecord(head, body, NO_STAMP)

    def go_on_at(self, at: int) -> None:
        """Continue with a record that was found after a hole."""
        self.lost = -1
        del self._buffer[:at]

    def clear(self) -> int:
        """Drop what is held; returns how many captured bytes that are."""
        count = len(self._buffer) - self._missing
        self._buffer.clear()
        self._missing = 0
        return count


def _record_size(buffer: bytes | bytearray, at: int) -> int:
    """Return the size of the record that begins here, its head included; 0 if none does."""
    if buffer[at] not in _KINDS or buffer[at + 1] != 3 or buffer[at + 2] > 4:
        return 0
    size = int.from_bytes(buffer[at + 3 : at + 5], "big")
    return HEAD_SIZE + size if 0 < size <= _RECORD_SIZE_MAX else 0
