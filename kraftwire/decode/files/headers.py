"""The part of a batch that tells whether it is one: its header, its length and its CRC.

Serves the scan of damaged files, so it judges bytes instead of trusting them; what a batch holds
is the business of kraftwire.records.

Source: Kafka's `DefaultRecordBatch` (magic 2) and `LegacyRecord` (magic 0 and 1).
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from crc32c import crc32c

from kraftwire.limits import BATCH_SIZE_MAX

__all__ = ["HEADER_SIZE", "OVERHEAD", "BatchHeader", "crc_of", "read_header"]

# Base offset and length: the part that the length does not count.
OVERHEAD = 12
HEADER_SIZE = 61
_LEGACY_OVERHEAD = {0: 14, 1: 22}
_CURRENT = struct.Struct(">qiibIhiqq")
_LEGACY = struct.Struct(">qiIbb")
_LEGACY_TIMESTAMP = struct.Struct(">q")
_KNOWN_ATTRIBUTES = 0x7F
_COMPRESSIONS = range(5)


class BatchHeader(NamedTuple):
    """What the scan needs of a header.

    Shape: `size` counts the whole batch with its overhead; a legacy message is a batch of one,
    and a compressed one says only its last offset.
    """

    base_offset: int
    last_offset: int
    size: int
    magic: int
    crc: int
    attributes: int
    max_timestamp: int

    @property
    def is_strict(self) -> bool:
        """Whether nothing in the header is unknown: the test for a header found by searching."""
        if self.magic == 2:
            known = 0 <= self.attributes <= _KNOWN_ATTRIBUTES
            return known and self.attributes & 7 in _COMPRESSIONS
        return 0 <= self.attributes <= 0x0F and self.attributes & 7 in _COMPRESSIONS


def read_header(head: memoryview) -> BatchHeader | None:
    """Read the header at the start of some bytes, or None if no batch starts there.

    Shape: give `HEADER_SIZE` bytes, or what the file still has.
    """
    if len(head) < OVERHEAD + min(_LEGACY_OVERHEAD.values()):
        return None
    magic = head[16]
    if magic == 2 and len(head) >= _CURRENT.size:
        base, length, epoch, _, crc, attributes, delta, _, newest = _CURRENT.unpack_from(head)
        if base < 0 or epoch < -1 or delta < 0:
            return None
        if not HEADER_SIZE <= length + OVERHEAD <= BATCH_SIZE_MAX:
            return None
        return BatchHeader(base, base + delta, length + OVERHEAD, 2, crc, attributes, newest)
    if magic in _LEGACY_OVERHEAD:
        return _read_legacy(head)
    return None


def _read_legacy(head: memoryview) -> BatchHeader | None:
    offset, length, crc, magic, attributes = _LEGACY.unpack_from(head)
    if offset < 0 or not _LEGACY_OVERHEAD[magic] <= length <= BATCH_SIZE_MAX - OVERHEAD:
        return None
    timestamp = -1
    if magic == 1 and len(head) >= _LEGACY.size + _LEGACY_TIMESTAMP.size:
        (timestamp,) = _LEGACY_TIMESTAMP.unpack_from(head, _LEGACY.size)
    return BatchHeader(offset, offset, length + OVERHEAD, magic, crc, attributes, timestamp)


def crc_of(batch: memoryview, magic: int) -> int:
    """The CRC that a batch of this magic must carry."""
    if magic == 2:
        value: int = crc32c(batch[21:])
        return value
    return zlib.crc32(batch[16:])
