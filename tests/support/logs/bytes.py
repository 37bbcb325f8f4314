"""Makes the bytes of record batches by hand, as input for tests of damage."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from crc32c import crc32c


def batch(
    base_offset: int,
    values: Sequence[bytes],
    *,
    timestamp: int = 1_700_000_000_000,
    leader_epoch: int = 0,
    attributes: int = 0,
) -> bytes:
    """A batch of magic 2 with records without keys and headers, a millisecond apart."""
    records = b"".join(_record(index, value) for index, value in enumerate(values))
    body = struct.pack(
        ">hiqqqhii",
        attributes,
        len(values) - 1,
        timestamp,
        timestamp + len(values) - 1,
        -1,
        -1,
        -1,
        len(values),
    )
    body += records
    head = struct.pack(">qiibI", base_offset, len(body) + 9, leader_epoch, 2, crc32c(body))
    return head + body


def segment(base_offset: int, batch_count: int, *, value_size: int = 20) -> list[bytes]:
    """Batches of three records each, at consecutive offsets."""
    return [
        batch(
            base_offset + 3 * index,
            [bytes([65 + index % 26]) * value_size] * 3,
            timestamp=1_700_000_000_000 + 10 * index,
        )
        for index in range(batch_count)
    ]


def legacy_message(offset: int, value: bytes, *, magic: int = 1, timestamp: int = 5) -> bytes:
    """An uncompressed message of magic 0 or 1 without a key."""
    body = struct.pack(">bb", magic, 0)
    if magic:
        body += struct.pack(">q", timestamp)
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def _record(index: int, value: bytes) -> bytes:
    body = b"\x00" + _varint(index) + _varint(index) + b"\x01" + _varint(len(value)) + value
    body += b"\x00"
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)
