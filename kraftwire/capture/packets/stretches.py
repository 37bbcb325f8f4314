"""A capture file that is read in stretches, some of them by other processes.

Owns where stretches begin, and that the blocks are those of a reader of the whole file: what is
decided at the borders of blocks is then decided at the same places. Only for the classic format,
in which a record is recognised by what its header says of the records after it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

from kraftwire.capture.packets.pcap import FILE_HEADER_SIZE, LITTLE_ENDIAN, RECORD_HEADER_SIZE
from kraftwire.limits import CAPTURE_READ_BYTES, PACKET_BYTES_MAX

__all__ = ["Stretch", "Stretches", "can_be_cut", "cut_after"]

# Where a stretch begins and ends.
Stretch = tuple[int, int]

# The first block of a capture, which shows what file it is; all others follow it.
_FIRST_BLOCK = 6

_RECORD = struct.Struct("<IIII").unpack_from
# So many plausible headers in a row are no accident. They are looked for in this many bytes.
_CHAIN = 6
_APART_MAX_S = 86_400
_SOUGHT_BYTES = 1024 * 1024
# The highest byte of a time stamp: it changes every 194 days.
_HIGH = 3


class Stretches:
    """Reads the blocks of a file from stretch to stretch, by a descriptor that stays open.

    `following` is asked where a stretch ends for the next one; the same place continues, None ends.
    `position` is that of the block that was read last, `size` that of the file. Where a block
    `is_begun`, its first bytes belong to the stretch before.
    """

    def __init__(self, file: int, first: Stretch, following: Callable[[], Stretch | None]) -> None:
        self.position = 0
        self.is_begun = False
        self._file = file
        self.size = os.fstat(file).st_size
        self._at, self._end = first
        self._following = following
        self._head = b"" if self._at == 0 else os.pread(self._file, FILE_HEADER_SIZE, 0)

    def read(self, _size: int) -> bytes:
        """Return the next block."""
        if self._head:
            head, self._head = self._head, b""
            return head
        if self._at >= self._end:
            found = self._following()
            if found is None:
                return b""
            self._at, self._end = found
        stop = min(_border_after(self._at), self._end)
        data = os.pread(self._file, stop - self._at, self._at)
        self.position = self._at
        self.is_begun = self._at > 0 and not _is_border(self._at)
        self._at += len(data)
        return data


def can_be_cut(path: str) -> bool:
    """Whether a path is that of a file with records that can be recognised."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(4) in LITTLE_ENDIAN
    except OSError:
        return False


def cut_after(file: int, wanted: int) -> int:
    """Return where the first record begins after the first border of blocks from a place on.

    The end of the file, if there is none. Raises: OSError.
    """
    size = os.fstat(file).st_size
    time = os.pread(file, 1, FILE_HEADER_SIZE + _HIGH)
    place = max(wanted, _FIRST_BLOCK)
    place += (_FIRST_BLOCK - place) % CAPTURE_READ_BYTES
    data = os.pread(file, _SOUGHT_BYTES, place)
    is_rest = place + len(data) >= size
    for high in (time, bytes([(time[0] + 1) & 0xFF])) if time else ():
        found = data.find(high, 1 + _HIGH)
        while found >= 0:
            if _is_chain(data, found - _HIGH, is_rest=is_rest):
                return place + found - _HIGH
            found = data.find(high, found + 1)
    return size


def _border_after(position: int) -> int:
    """Return where the block ends that a position is in."""
    if position < _FIRST_BLOCK:
        return _FIRST_BLOCK
    return position + CAPTURE_READ_BYTES - (position - _FIRST_BLOCK) % CAPTURE_READ_BYTES


def _is_border(position: int) -> bool:
    return (position - _FIRST_BLOCK) % CAPTURE_READ_BYTES == 0


def _is_chain(data: bytes, at: int, *, is_rest: bool) -> bool:
    """Whether records of about the same time follow each other from a place on."""
    first = None
    for _ in range(_CHAIN):
        if at + RECORD_HEADER_SIZE > len(data):
            return is_rest and at == len(data)
        seconds, _, captured, wire = _RECORD(data, at)
        if not 0 < captured <= wire <= PACKET_BYTES_MAX:
            return False
        first = seconds if first is None else first
        if abs(seconds - first) > _APART_MAX_S:
            return False
        at += RECORD_HEADER_SIZE + captured
    return True
