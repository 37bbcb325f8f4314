"""The batches of logs as plain values: what disks and books of a timeless cluster hold.

Owns how a batch is read; the same bytes are read once.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import decode_control
from kraftwire.records.header import CONTROL

__all__ = ["Entry", "Key", "Voters", "entries_of", "read_control", "record_values"]

# A replica: node id and directory id, zeros for an unknown directory.
Key = tuple[int, bytes]

# A voter set. Order: by id.
Voters = tuple[Key, ...]

# Base offset, length, leader epoch, attributes and last offset delta of a batch.
_HEAD = struct.Struct(">qii5xhi").unpack_from
_OVERHEAD = 12


class Entry(NamedTuple):
    """A batch of a log. `voters` and `version` are what a control batch sets, None for nothing;
    `voters_offset` is the offset of the record that does."""

    base: int
    end: int
    epoch: int
    data: bytes
    is_control: bool = False
    voters: Voters | None = None
    version: int | None = None
    voters_offset: int = -1


def entries_of(data: bytes | memoryview) -> list[Entry]:
    """The batches in these bytes, which hold whole ones only."""
    found = []
    position, size = 0, len(data)
    while position < size:
        length = _HEAD(data, position)[1] + _OVERHEAD
        found.append(_entry(bytes(data[position : position + length])))
        position += length
    return found


@lru_cache(maxsize=1 << 14)
def _entry(data: bytes) -> Entry:
    base, _, epoch, attributes, delta = _HEAD(data)
    entry = Entry(base, base + delta + 1, epoch, data)
    if not attributes & CONTROL:
        return entry
    voters, version, offset = read_control(data)
    return Entry(base, base + delta + 1, epoch, data, True, voters, version, offset)


@lru_cache(maxsize=1 << 12)
def read_control(data: bytes) -> tuple[Voters | None, int | None, int]:
    """Voter set and kraft.version that a control batch sets, and the offset of the former."""
    voters: Voters | None = None
    version: int | None = None
    offset = -1
    for record in RecordBatch(data).records():
        message = decode_control(record.key, record.value).message
        if isinstance(message, VotersRecord):
            keys = ((one.voter_id, one.voter_directory_id) for one in message.voters)
            voters, offset = tuple(sorted(keys)), record.offset
        elif isinstance(message, KRaftVersionRecord):
            version = message.kraft_version
    return voters, version, offset


def record_values(entry: Entry) -> list[bytes]:
    """The values of a data batch; nothing for a control batch."""
    if entry.is_control:
        return []
    return [record.value or b"" for record in RecordBatch(entry.data).records()]
