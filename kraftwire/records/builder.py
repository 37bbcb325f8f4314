"""Builds record batches of magic 2, byte for byte as Kafka's Java client would.

The caller sets every field of the header: the writer of a log sets offsets and leader epoch, a
producer its id, epoch and sequence.

Source: Kafka's `MemoryRecordsBuilder` and `DefaultRecordBatch`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, cast

from kraftwire import engine
from kraftwire.errors import UsageError, WireError
from kraftwire.records.compression import codec_id, compress
from kraftwire.records.crc import crc32c
from kraftwire.records.header import (
    BEFORE_BODY,
    BODY,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_MIN,
    MAGIC,
    STAMPED,
    TRANSACTIONAL,
)
from kraftwire.records.record import NO_HEADERS, NO_SEQUENCE, Headers, Record
from kraftwire.wire.varint import varint

_INT16, _INT32, _INT64 = (range(-(2**bits), 2**bits) for bits in (15, 31, 63))
_POSITIVE_INT32 = range(2**31)
_BYTES = bytes | bytearray | memoryview

_NO_TIMESTAMP = -1

# The number of headers of a record without any.
_HEADERLESS = b"\x00"

# Longest varints: the record's length, offset delta, and lengths of key and value of 32 bits, the
# number of headers, a timestamp delta of 64 bits; and the byte of attributes.
_RECORD_OVERHEAD_MAX = 5 * 5 + 10 + 1

_VARINTS_MAX = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """The header fields that a caller sets; all others are derived from the records.

    Timestamps are in milliseconds. `base_offset` defaults to the first record's offset,
    `last_offset` to the last one's, `max_timestamp` to the largest. `append_time` gives the batch
    LogAppendTime. `level` is on the codec's own scale.
    """

    base_offset: int | None = None
    last_offset: int | None = None
    partition_leader_epoch: int = -1
    compression: str = "none"
    level: int | None = None
    append_time: int | None = None
    max_timestamp: int | None = None
    delete_horizon_ms: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False


@dataclass(slots=True)
class Columns:
    """The records to write, field by field; without offsets, they are consecutive."""

    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers] | None
    offsets: Sequence[int] | None


_DEFAULT = BatchHeader()


class BatchBuilder:
    """Collects records with consecutive offsets until they are built into a batch."""

    def __init__(self, header: BatchHeader = _DEFAULT) -> None:
        """Start without records. The first one gets the header's base offset, or 0."""
        self._header = header
        self._timestamps: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[Headers] = []
        self.next_offset = header.base_offset or 0
        self.size_max = HEADER_SIZE

    def __len__(self) -> int:
        return len(self._timestamps)

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = NO_HEADERS,
    ) -> int:
        """Add a record; return its offset. `size_max` bounds the size of the batch so far."""
        size = _RECORD_OVERHEAD_MAX
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
        if headers:
            size += len(_headers(headers))
        self.size_max += size
        self._timestamps.append(timestamp)
        self._keys.append(key)
        self._values.append(value)
        self._headers.append(headers)
        offset = self.next_offset
        self.next_offset = offset + 1
        return offset

    def build(self) -> bytes:
        """Return the batch. Raises: WireError or UsageError as `build_batch`."""
        columns = Columns(self._timestamps, self._keys, self._values, self._headers, None)
        return _build(columns, self._header)


def record_size_max(
    key: bytes | None, value: bytes | None, headers: Headers = NO_HEADERS
) -> int:
    """Return the largest size of a record, before compression."""
    size = _RECORD_OVERHEAD_MAX + len(key or b"") + len(value or b"")
    return size + (len(_headers(headers)) if headers else 0)


def build_batch(records: Iterable[Record], header: BatchHeader = _DEFAULT) -> bytes:
    """Return the bytes of a batch.

    Records must be in offset order; their own `sequence` is ignored. Raises: WireError if
    a value does not fit its field; UsageError for an unknown compression, and for no records
    unless the header has both offsets, as batches emptied by compaction do.
    """
    rows = records if isinstance(records, Sequence) else list(records)
    if engine.core is not None:
        try:
            offsets, timestamps, keys, values, headers = engine.core.split_records(rows)
            return _build(Columns(timestamps, keys, values, headers, offsets), header)
        except ValueError:
            pass  # rows of another kind
    columns = Columns(
        [row[1] for row in rows],
        [row[2] for row in rows],
        [row[3] for row in rows],
        [row[4] for row in rows],
        [row[0] for row in rows],
    )
    return _build(columns, header)


def build_columns(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    *,
    headers: Sequence[Headers] | None = None,
    header: BatchHeader = _DEFAULT,
) -> bytes:
    """Return the bytes of a batch, from fields instead of records: the fastest way to build one.

    All columns have the same length; offsets are consecutive from the header's base offset, or from
    0. Raises: WireError or UsageError as `build_batch`, UsageError if the lengths differ.
    """
    lengths = {len(timestamps), len(keys), len(values)}
    if headers is not None:
        lengths.add(len(headers))
    if len(lengths) > 1:
        raise UsageError(f"the columns of a batch differ in length: {sorted(lengths)}")
    return _build(Columns(timestamps, keys, values, headers, None), header)


def _build(columns: Columns, header: BatchHeader) -> bytes:
    base_offset, last_offset = _offsets(columns, header)
    codec = codec_id(header.compression)
    try:
        base_timestamp, max_timestamp = _timestamps(columns.timestamps, header)
        body = BODY.pack(
            codec | _flags(header),
            last_offset - base_offset,
            base_timestamp,
            max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            len(columns.timestamps),
        )
        payload = _payload(columns, base_offset, base_timestamp)
        if codec and payload:
            payload = compress(codec, payload, level=header.level)
        length = LENGTH_MIN + len(payload)
        crc = crc32c(payload, crc32c(body))
        before = BEFORE_BODY.pack(base_offset, length, header.partition_leader_epoch, MAGIC, crc)
    except (AttributeError, TypeError, ValueError, struct.error):
        problem = _encoding_problem(columns, header)
        if problem is None:
            raise  # a mistake of ours, not of the caller
        raise WireError(
            f"a value does not fit its field: {problem}", message="RecordBatch", version=MAGIC
        ) from None
    return b"".join((before, body, payload))


def _offsets(columns: Columns, header: BatchHeader) -> tuple[int, int]:
    """Base offset and last offset."""
    first, last = header.base_offset, header.last_offset
    count = len(columns.timestamps)
    if count and columns.offsets is not None:
        first = columns.offsets[0] if first is None else first
        last = columns.offsets[-1] if last is None else last
    elif count:
        first = first or 0
        last = first + count - 1 if last is None else last
    if first is None or last is None:
        raise UsageError("a batch without records needs a base offset and a last offset")
    return first, last


def _timestamps(timestamps: Sequence[int], header: BatchHeader) -> tuple[int, int]:
    """Base timestamp and largest timestamp."""
    base = timestamps[0] if timestamps else _NO_TIMESTAMP
    if header.delete_horizon_ms is not None:
        base = header.delete_horizon_ms
    if header.append_time is not None:
        return base, header.append_time
    if header.max_timestamp is not None:
        return base, header.max_timestamp
    if isinstance(timestamps, range) and timestamps:
        return base, max(timestamps[0], timestamps[-1])
    return base, max(timestamps, default=_NO_TIMESTAMP)


def _flags(header: BatchHeader) -> int:
    return (
        STAMPED * (header.append_time is not None)
        | TRANSACTIONAL * header.is_transactional
        | CONTROL * header.is_control
        | DELETE_HORIZON * (header.delete_horizon_ms is not None)
    )


class _Varints(dict[int, bytes]):
    """Zig-zag varints by value; the small ones, which are frequent, are cached."""

    def __init__(self, values: range, prefix: bytes = b"") -> None:
        super().__init__()
        self._values = values
        self._prefix = prefix

    def __missing__(self, value: int) -> bytes:
        # `in` would try every number of the range for anything that is not an int.
        if not isinstance(value, int):
            raise TypeError(f"{value!r:.60} is not an int")
        if not self._values.start <= value < self._values.stop:
            raise ValueError(f"{value} is not from {self._values.start} to {self._values.stop}")
        encoded = self._prefix + varint(value)
        if len(self) < _VARINTS_MAX:
            self[value] = encoded
        return encoded


_SIZES = _Varints(range(-1, 2**31))
_OFFSETS = _Varints(range(2**31))
# The attributes byte comes before the timestamp.
_TIMES = _Varints(range(-(2**63), 2**63), b"\x00")


def _payload(columns: Columns, base_offset: int, base_timestamp: int) -> bytes:
    """Return the records, uncompressed: by the engine in C if it is in use and does not give up."""
    if engine.core is not None:
        timestamps = columns.timestamps
        if isinstance(timestamps, range):
            timestamps = list(timestamps)
        try:
            payload: bytes = engine.core.write_records(
                len(timestamps),
                timestamps,
                columns.keys,
                columns.values,
                columns.headers,
                columns.offsets,
                base_offset,
                base_timestamp,
            )
        except (OverflowError, TypeError, ValueError):
            pass  # Python copes or says what is wrong
        else:
            return payload
    return _encode(columns, base_offset, base_timestamp)


def _encode(columns: Columns, base_offset: int, base_timestamp: int) -> bytes:
    """Return the records, uncompressed, assembled by column: the loops then run in C.

    Raises: AttributeError, TypeError, UnicodeError or ValueError on values that do not fit.
    """
    times, offsets = _TIMES, _OFFSETS
    deltas: Iterable[bytes]
    if columns.offsets is None:
        deltas = map(offsets.__getitem__, range(len(columns.timestamps)))
    else:
        deltas = [offsets[offset - base_offset] for offset in columns.offsets]
    tails: Iterable[bytes] = repeat(_HEADERLESS)
    if columns.headers is not None and any(columns.headers):
        tails = [_headers(headers) for headers in columns.headers]
    key_sizes, keys = _payloads(columns.keys)
    value_sizes, values = _payloads(columns.values)
    fields = zip(
        [times[timestamp - base_timestamp] for timestamp in columns.timestamps],
        deltas,
        key_sizes,
        keys,
        value_sizes,
        values,
        tails,
        strict=False,
    )
    bodies = list(map(b"".join, fields))
    lengths = map(_SIZES.__getitem__, map(len, bodies))
    return b"".join(chain.from_iterable(zip(lengths, bodies, strict=True)))


def _payloads(data: Sequence[bytes | None]) -> tuple[Iterable[bytes], Iterable[bytes]]:
    """Return the encoded lengths of keys or values, and the bytes that follow them."""
    encoded = _SIZES.__getitem__
    if None in data:
        sizes = [-1 if item is None else len(item) for item in data]
        return map(encoded, sizes), [b"" if item is None else item for item in data]
    present = cast(Sequence[bytes], data)
    return map(encoded, map(len, present)), present


def _headers(headers: Headers) -> bytes:
    """Return the headers of a record with their count."""
    parts = [_SIZES[len(headers)]]
    for key, value in headers:
        name = key.encode()
        size = -1 if value is None else len(value)
        parts += (_SIZES[len(name)], name, _SIZES[size], value or b"")
    return b"".join(parts)


def _encoding_problem(columns: Columns, header: BatchHeader) -> str | None:
    """Describe the first value that does not fit; None if all do."""
    return next(_encoding_problems(columns, header), None)


def _encoding_problems(columns: Columns, header: BatchHeader) -> Iterator[str]:
    yield from _of_header(header)
    if columns.offsets is not None:
        yield from _of_numbers("offset", columns.offsets, header.base_offset, _POSITIVE_INT32)
    base = header.delete_horizon_ms
    yield from _of_numbers("timestamp", columns.timestamps, base, _INT64)
    last, first = header.last_offset, header.base_offset
    if last is not None and first is not None:
        yield from _of_number("distance of the last from the base offset", last - first, _INT32)
    for name, column in (("key", columns.keys), ("value", columns.values)):
        for number, value in enumerate(column):
            yield from _of_bytes(f"{name} of record {number}", value)
    for number, headers in enumerate(columns.headers or ()):
        yield from _of_headers(f"record {number}", headers)


def _of_header(header: BatchHeader) -> Iterator[str]:
    for name, value, numbers in (
        ("base offset", header.base_offset, _INT64),
        ("last offset", header.last_offset, _INT64),
        ("partition leader epoch", header.partition_leader_epoch, _INT32),
        ("append time", header.append_time, _INT64),
        ("largest timestamp", header.max_timestamp, _INT64),
        ("delete horizon", header.delete_horizon_ms, _INT64),
        ("producer id", header.producer_id, _INT64),
        ("producer epoch", header.producer_epoch, _INT16),
        ("base sequence", header.base_sequence, _INT32),
    ):
        # None stands for a value that is derived from the records.
        if value is not None:
            yield from _of_number(name, value, numbers)


def _of_numbers(name: str, column: Any, base: Any, distances: range) -> Iterator[str]:
    """Check the numbers of a column, and their distances from the base: by default the first."""
    for number, value in enumerate(column):
        place = f"{name} of record {number}"
        yield from _of_number(place, value, _INT64)
        base = value if base is None else base
        yield from _of_number(f"distance of the {place} from the base", value - base, distances)


def _of_number(name: str, value: Any, numbers: range) -> Iterator[str]:
    if not isinstance(value, int):
        yield f"the {name} is {value!r:.60}, not an int"
    elif not numbers.start <= value < numbers.stop:
        yield f"the {name} is {value}, not from {numbers.start} to {numbers.stop - 1}"


def _of_bytes(name: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, _BYTES):
        yield f"the {name} is {value!r:.60}, not bytes"
    elif memoryview(value).nbytes not in _POSITIVE_INT32 or memoryview(value).itemsize != 1:
        yield f"the {name} has {len(value)} elements of {memoryview(value).itemsize} bytes"


def _of_headers(place: str, headers: Any) -> Iterator[str]:
    if not isinstance(headers, tuple | list):
        yield f"the headers of {place} are {headers!r:.60}, not pairs of key and value"
        return
    for header in headers:
        if not isinstance(header, tuple | list) or len(header) != 2:
            yield f"a header of {place} is {header!r:.60}, not a pair of key and value"
            return
        key, value = header
        if not isinstance(key, str):
            yield f"a header's key of {place} is {key!r:.60}, not text"
        elif any("\ud800" <= letter <= "\udfff" for letter in key):
            yield f"a header's key of {place} is {key!r:.60}, which UTF-8 cannot encode"
        yield from _of_bytes(f"value of a header of {place}", value)
