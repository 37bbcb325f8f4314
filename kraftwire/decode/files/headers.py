"""The part of a batch by which it is recognised: its header, its length and its CRC.

Serves the scan of damaged files, so it judges bytes instead of trusting them; what a batch holds
is up to kraftwire.records.

Source: Kafka's `DefaultRecordBatch` (magic 2) and `LegacyRecord` (magic 0 and 1).
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from crc32c import crc32c

from kraftwire.limits import BATCH_SIZE_MAX
from kraftwire.records.compression import CODEC_MASK, NAMES
from kraftwire.records.header import CRC_START, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC_FIELD
from kraftwire.records.legacy import MESSAGE_OVERHEAD

__all__ = ["HEADER_SIZE", "LOG_OVERHEAD", "BatchHeader", "crc_of", "read_header"]

_LEGACY = struct.Struct(">qiIbb")
_LEGACY_TIMESTAMP = struct.Struct(">q")
_KNOWN_ATTRIBUTES = 0x7F
_KNOWN_LEGACY_ATTRIBUTES = 0x0F


class BatchHeader(NamedTuple):
    """The fields of a header that the scan needs.

    `size` counts the whole batch with its overhead; a legacy message is a batch of one,
    and a compressed one says only its last offset.
    """

    base_offset: int
    last_offset: int
    size: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    max_timestamp: int

    @property
    def is_strict(self) -> bool:
        """Whether nothing in the header is unknown: the test for a header found by searching."""
        known = _KNOWN_ATTRIBUTES if self.magic == 2 else _KNOWN_LEGACY_ATTRIBUTES
        return self.attributes & ~known == 0 and self.attributes & CODEC_MASK < len(NAMES)


def read_header(head: memoryview) -> BatchHeader | None:
    """Read the header at the start of some bytes, or None if no batch starts there.

    Give `HEADER_SIZE` bytes, or what the file still has.
    """
    if len(head) < LOG_OVERHEAD + MESSAGE_OVERHEAD[0]:
        return None
    magic = head[MAGIC_FIELD]
    if magic == 2:
        return _read_current(head) if len(head) >= HEADER_SIZE else None
    return _read_legacy(head) if magic in MESSAGE_OVERHEAD else None


def _read_current(head: memoryview) -> BatchHeader | None:
    base, length, epoch, _, crc, attributes, delta, _, newest, *_ = HEADER.unpack_from(head)
    size = length + LOG_OVERHEAD
    if base < 0 or epoch < -1 or delta < 0 or not HEADER_SIZE <= size <= BATCH_SIZE_MAX:
        return None
    return BatchHeader(base, base + delta, size, epoch, 2, crc, attributes, newest)


def _read_legacy(head: memoryview) -> BatchHeader | None:
    offset, length, crc, magic, attributes = _LEGACY.unpack_from(head)
    if offset < 0 or not MESSAGE_OVERHEAD[magic] <= length <= BATCH_SIZE_MAX - LOG_OVERHEAD:
        return None
    timestamp = -1
    if magic == 1 and len(head) >= _LEGACY.size + _LEGACY_TIMESTAMP.size:
        (timestamp,) = _LEGACY_TIMESTAMP.unpack_from(head, _LEGACY.size)
    size = length + LOG_OVERHEAD
    return BatchHeader(offset, offset, size, -1, magic, crc, attributes, timestamp)


def crc_of(batch: memoryview, magic: int) -> int:
    """The CRC that a batch of this magic must carry."""
    if magic == 2:
        value: int = crc32c(batch[CRC_START:])
        return value
    return zlib.crc32(batch[MAGIC_FIELD:])
