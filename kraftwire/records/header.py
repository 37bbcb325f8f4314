"""The header of a magic 2 batch: the one place that knows the position of each field.

The header is 61 bytes: base offset, length of what follows, partition leader epoch, magic, CRC-32C
of everything after it, attributes, last offset delta, base and largest timestamp, producer id,
producer epoch, base sequence, record count.

Source: Kafka's `DefaultRecordBatch`.
"""

from __future__ import annotations

import struct

_CODES = {
    "base_offset": "q",
    "batch_length": "i",
    "partition_leader_epoch": "i",
    "magic": "b",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp": "q",
    "max_timestamp": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "count": "i",
}
_NAMES = tuple(_CODES)

HEADER = struct.Struct(">" + "".join(_CODES.values()))
HEADER_SIZE = HEADER.size

MAGIC = 2


def fields(*names: str, start: str = "base_offset") -> struct.Struct:
    """Return a struct for some fields of a header, in order; those between them are skipped.

    A reader unpacks them at the batch's position. With `start`, positions are counted from that
    field on, for a writer that assembles a header from parts.
    """
    codes = []
    for name in _NAMES[_NAMES.index(start) : _NAMES.index(names[-1]) + 1]:
        code = _CODES[name]
        codes.append(code if name in names else f"{struct.calcsize('>' + code)}x")
    return struct.Struct(">" + "".join(codes))


# A header in two parts, for writers: the CRC in the first covers the second and the records.
_BODY_AT = _NAMES.index("attributes")
BEFORE_BODY = fields(*_NAMES[:_BODY_AT])
BODY = fields(*_NAMES[_BODY_AT:], start="attributes")


def _position(name: str) -> int:
    before = "".join(_CODES[each] for each in _NAMES[: _NAMES.index(name)])
    return struct.calcsize(">" + before)


# Base offset and length: the bytes that the length does not count.
LOG_OVERHEAD = _position("partition_leader_epoch")

# The least value of the length.
LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD

# The position of length and magic in every format, the older ones too.
SIZE_FIELD = _position("batch_length")
MAGIC_FIELD = _position("magic")

# The CRC covers the batch from its attributes on, so a leader may set offset and leader epoch.
CRC_FIELD = _position("crc")
CRC_START = _position("attributes")
COUNT_FIELD = _position("count")

# Bits of the attributes above those of the codec.
STAMPED = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
