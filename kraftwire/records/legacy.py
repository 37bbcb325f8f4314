"""Messages of magic 0 and 1, read only, with the interface of record batches.

Layout: offset, size of what follows, CRC-32 of everything after it, magic, attributes, timestamp
(magic 1 only), key and value with 32-bit lengths. A compressed message is a wrapper: its value is
a message set. Inside a wrapper of magic 0 offsets are absolute; inside one of magic 1 they count
from 0 and the wrapper has the last one's. Messages inside wrappers are never wrappers.

Source: Kafka's `AbstractLegacyRecordBatch` and `LegacyRecord`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kraftwire.errors import WireError
from kraftwire.records.batch import CREATE_TIME, LOG_APPEND_TIME
from kraftwire.records.compression import CODEC_MASK, NAMES, decompress
from kraftwire.records.header import LOG_OVERHEAD, MAGIC_FIELD, SIZE_FIELD, STAMPED
from kraftwire.records.limits import BombError, count_limit
from kraftwire.records.record import NO_SEQUENCE, Record
from kraftwire.records.salvage import bare

NO_TIMESTAMP_TYPE = "NoTimestampType"
_NO_TIMESTAMP = -1

_HEAD = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_CRC_START = 16

# Size of a message without key and value, by magic; a smaller length field is wrong.
MESSAGE_OVERHEAD = {0: 14, 1: 22}

_ZSTD = 4


class _Message(NamedTuple):
    """One message as encoded, wrapper or not."""

    offset: int
    batch_length: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class LegacyBatch:
    """A message of magic 0 or 1: a batch of one record, or of a wrapper's.

    The attributes are those of `RecordBatch`; what the format lacks is -1, False or None.
    `base_offset` and `count` of a wrapper require decompression.
    """

    __slots__ = ("_buffer", "_message", "_rows", "position")

    partition_leader_epoch = -1
    producer_id = -1
    producer_epoch = -1
    base_sequence = NO_SEQUENCE
    last_sequence = NO_SEQUENCE
    is_transactional = False
    is_control = False
    delete_horizon_ms = None

    def __init__(self, buffer: bytes | memoryview, position: int = 0) -> None:
        """Read the message; the caller (`BatchReader`) has checked that it is complete.

        Raises: WireError if its key or value leads outside.
        """
        self._buffer = buffer
        self.position = position
        self._message = _read(buffer, position)
        self._rows: list[Record] | None = None

    @property
    def batch_length(self) -> int:
        """The header's length field: bytes after it."""
        return self._message.batch_length

    @property
    def size(self) -> int:
        """Bytes of the whole message."""
        return self._message.batch_length + LOG_OVERHEAD

    @property
    def end(self) -> int:
        """The position after the message."""
        return self.position + self.size

    @property
    def raw(self) -> memoryview:
        """The bytes of the message, not copied."""
        return memoryview(self._buffer)[self.position : self.end]

    @property
    def magic(self) -> int:
        """0 or 1."""
        return self._message.magic

    @property
    def crc(self) -> int:
        """The CRC-32 in the header."""
        return self._message.crc

    @property
    def attributes(self) -> int:
        """The byte of attributes."""
        return self._message.attributes

    @property
    def codec(self) -> int:
        """Id of the compression codec."""
        return self._message.attributes & CODEC_MASK

    @property
    def compression(self) -> str:
        """Name of the compression codec."""
        return NAMES[self.codec]

    @property
    def timestamp_type(self) -> str:
        """``CreateTime``, ``LogAppendTime`` or, of magic 0, ``NoTimestampType``."""
        if self.magic == 0:
            return NO_TIMESTAMP_TYPE
        return LOG_APPEND_TIME if self._message.attributes & STAMPED else CREATE_TIME

    @property
    def base_timestamp(self) -> int:
        """The message's timestamp, or -1."""
        return self._message.timestamp

    @property
    def max_timestamp(self) -> int:
        """The message's timestamp, or -1."""
        return self._message.timestamp

    @property
    def base_offset(self) -> int:
        """Offset of the first record. Raises: WireError if a wrapper is damaged."""
        return self.records()[0].offset if self.codec else self._message.offset

    @property
    def last_offset(self) -> int:
        """The message's offset, which a wrapper has from its last record."""
        return self._message.offset

    @property
    def last_offset_delta(self) -> int:
        """Distance of the first and the last offset. Raises: WireError as `base_offset`."""
        return self.last_offset - self.base_offset

    @property
    def count(self) -> int:
        """Number of records. Raises: WireError if a wrapper is damaged."""
        return len(self.records()) if self.codec else 1

    @property
    def computed_crc(self) -> int:
        """The CRC that the header should hold."""
        return zlib.crc32(self.raw[_CRC_START:])

    @property
    def is_valid(self) -> bool:
        """Whether the CRC is correct, computed again each time."""
        return self.computed_crc == self.crc

    def ensure_valid(self) -> None:
        """Raises: WireError if the CRC is wrong."""
        computed = self.computed_crc
        if computed != self.crc:
            raise self._error(
                "the CRC of a message is wrong", "crc", (str(computed), str(self.crc))
            )

    def ensure_readable(self) -> None:
        """Check that the records can be read. Raises: WireError as `records`."""
        self.records()

    def records(self) -> list[Record]:
        """All records. Raises: WireError on damaged compression or damaged inner messages."""
        if self._rows is None:
            self._rows = self._read_rows()
        return self._rows

    def iter_records(self) -> Iterator[Record]:
        """All records. Raises: WireError as `records`."""
        return iter(self.records())

    def salvage(self) -> tuple[list[Record], WireError | None]:
        """Return all records, or none and the damage."""
        try:
            return self.records(), None
        except WireError as error:
            return [], bare(error)

    def iter_salvage(self) -> LegacySalvage:
        """Return an iterator over what `salvage` returns, one record at a time."""
        return LegacySalvage(self)

    def _read_rows(self) -> list[Record]:
        outer = self._message
        if not self.codec:
            return [Record(outer.offset, outer.timestamp, outer.key, outer.value)]
        inner = self._inner()
        shift = self._shift(inner[-1].offset)
        stamp = outer.timestamp if outer.attributes & STAMPED else None
        return [
            Record(
                message.offset + shift,
                message.timestamp if stamp is None or message.magic == 0 else stamp,
                message.key,
                message.value,
            )
            for message in inner
        ]

    def _inner(self) -> list[_Message]:
        """Return the messages of a wrapper; one that is cut ends the list, as in Java."""
        value = self._message.value
        limit = count_limit(self.size)
        if value is None or self.codec == _ZSTD:
            found = "gzip, snappy or lz4", "null" if value is None else "zstd"
            raise self._error("no such wrapper exists", "value", found)
        try:
            data = decompress(self.codec, value)
            inner = list(islice(_messages(data), limit + 1))
        except WireError as error:
            at = "" if error.offset is None else f"byte {error.offset} of a wrapper's contents: "
            found = error.expected, error.found
            raise self._error(at + error.problem, "value", found, type(error)) from None
        if len(inner) > limit:
            found = f"at most {limit} from {self.size} bytes", "more"
            problem = "the messages of a wrapper are too many for its bytes"
            raise self._error(problem, "value", found, BombError)
        if not inner:
            raise self._error("a wrapper without messages", "value", ("a message", "none"))
        return inner

    def _shift(self, last_inner_offset: int) -> int:
        """Return what to add to the offsets of inner messages."""
        # Some producers left a wrapper's offset at 0; then the inner offsets are used unchanged.
        if self.magic == 0 or self.last_offset == 0:
            return 0
        if self.last_offset < last_inner_offset:
            raise self._error(
                "a wrapper's offset is below that of its last message",
                "offset",
                (f"{last_inner_offset} or more", str(self.last_offset)),
            )
        return self.last_offset - last_inner_offset

    def _error(
        self,
        problem: str,
        path: str,
        found: tuple[str, str],
        kind: type[WireError] = WireError,
    ) -> WireError:
        return _error(problem, self._message.magic, path, self.position, found, kind=kind)


class LegacySalvage:
    """Iterates over the records of a message; `damage` says afterwards why there are none."""

    def __init__(self, batch: LegacyBatch) -> None:
        self.damage: WireError | None = None
        self._batch = batch

    def __iter__(self) -> Iterator[Record]:
        for rows in self.chunks():
            yield from rows

    def chunks(self) -> Iterator[list[Record]]:
        """Yield the same records in one list."""
        rows, self.damage = self._batch.salvage()
        yield rows


def _messages(data: bytes) -> Iterator[_Message]:
    """Yield the messages inside a wrapper."""
    position = 0
    while len(data) - position > MAGIC_FIELD:
        (size,) = _SIZE.unpack_from(data, position + SIZE_FIELD)
        if size > len(data) - position - LOG_OVERHEAD:
            return
        message = _read(data, position)
        if message.attributes & CODEC_MASK:
            found = ("an uncompressed message", NAMES[message.attributes & CODEC_MASK])
            raise _error("a wrapper inside a wrapper", message.magic, "attributes", position, found)
        yield message
        position += LOG_OVERHEAD + size


def _read(buffer: bytes | memoryview, start: int) -> _Message:
    """Read the message at a position. Raises: WireError if its fields do not fit its size."""
    if len(buffer) - start < _HEAD.size:
        found = ("a header", f"{len(buffer) - start} bytes")
        raise _error("a message is too short", -1, "size", start, found)
    offset, size, crc, magic, attributes = _HEAD.unpack_from(buffer, start)
    least = MESSAGE_OVERHEAD.get(magic)
    if least is None:
        raise _error("unknown magic", magic, "magic", start, ("0 or 1", str(magic)))
    end = start + LOG_OVERHEAD + size
    if size < least or end > len(buffer):
        found = (f"{least} to {len(buffer) - start - LOG_OVERHEAD}", str(size))
        raise _error("message size out of range", magic, "size", start, found)
    position, timestamp = start + _HEAD.size, _NO_TIMESTAMP
    if magic:
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, position)
        position += _TIMESTAMP.size
    payloads: list[bytes | None] = []
    for name in ("key", "value"):
        room = end - position - _SIZE.size
        length = _SIZE.unpack_from(buffer, position)[0] if room >= 0 else 0
        if length > room:
            found = (f"at most {room} bytes", str(length))
            raise _error("the field leads outside", magic, name, position, found)
        position += _SIZE.size
        # As in Java, any negative length is a null, and bytes after the value are ignored.
        payloads.append(bytes(buffer[position : position + length]) if length >= 0 else None)
        position += max(0, length)
    return _Message(offset, size, crc, magic, attributes, timestamp, *payloads)


def _error(
    problem: str,
    magic: int,
    path: str,
    offset: int,
    found: tuple[str, str],
    *,
    kind: type[WireError] = WireError,
) -> WireError:
    return kind(
        problem,
        message="Message",
        version=magic,
        path=path,
        offset=offset,
        expected=found[0],
        found=found[1],
    )
