"""The batches of a log, as checks and simulated disks see them: offsets, epoch, bytes, voters."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from kraftwire.records.batch import RecordBatch
from kraftwire.records.header import CONTROL
from kraftwire.sim.checks.voters import Voters, read_control

# Restarts and loaded snapshots read the same control batches again.
control_of = lru_cache(maxsize=1 << 12)(read_control)

# Base offset, length, leader epoch, attributes and last offset delta of a batch.
_HEAD = struct.Struct(">qii5xhi").unpack_from
_OVERHEAD = 12


class Entry(NamedTuple):
    """A batch of a log.

    `voters` and `version` are those that a control batch sets, None for no change; `voters_offset`
    is the offset of the record with the voters.
    """

    base: int
    end: int
    epoch: int
    data: bytes
    is_control: bool = False
    voters: Voters | None = None
    version: int | None = None
    voters_offset: int = -1


def entries_of(data: bytes | memoryview) -> tuple[Entry, ...]:
    """Return the batches in these bytes, which must be whole."""
    size = len(data)
    length = _HEAD(data)[1] + _OVERHEAD if size else 0
    if length == size:
        return (_entry(bytes(data)),) if size else ()
    found = []
    position = 0
    while position < size:
        length = _HEAD(data, position)[1] + _OVERHEAD
        found.append(_entry(bytes(data[position : position + length])))
        position += length
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def _entry(data: bytes) -> Entry:
    base, _, epoch, attributes, delta = _HEAD(data)
    entry = Entry(base, base + delta + 1, epoch, data)
    if not attributes & CONTROL:
        return entry
    voters, version, offset = control_of(data)
    return Entry(base, base + delta + 1, epoch, data, True, voters, version, offset)


def record_values(entry: Entry) -> list[bytes]:
    """Return the values of a data batch; nothing for a control batch."""
    if entry.is_control:
        return []
    return [record.value or b"" for record in RecordBatch(entry.data).records()]


class Applied:
    """A state machine: the end of the batches that it has applied, and their checksum."""

    __slots__ = ("offset", "sum")

    def __init__(self, offset: int = 0, total: int = 0) -> None:
        self.offset = offset
        self.sum = total

    def apply(self, entry: Entry) -> None:
        """Apply a batch."""
        self.sum = crc32(entry.data, self.sum)
        self.offset = entry.end
