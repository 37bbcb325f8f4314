"""Reads the records of a magic 2 batch, fast.

Straight-line code without checks: at any surprise (a varint longer than usual, a length that
leads outside, a record that does not end where it says) `iter_records` reads the chunk again with
every check, and either succeeds or names the wrong byte. kraftwire.records.columns reads runs
of records of equal layout by columns. The engine in C comes first where it is in use; the code here
handles what it gives up on.

Like Java, it accepts any negative length of a key or value as a null, sums that wrap around at 64
bits, and varints longer than necessary.

Source: Kafka's `DefaultRecord` and `ByteUtils`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any

from kraftwire import engine
from kraftwire.errors import WireError
from kraftwire.records.columns import (
    RUN_COUNT_MIN,
    VARINT_CODES,
    Unusual,
    read_raw,
    read_run,
    varint_values,
)
from kraftwire.records.limits import (
    HEADERS_COUNT_FREE,
    RECORDS_CHUNK_BYTES,
    RECORDS_CHUNK_COUNT,
    BombError,
)
from kraftwire.records.record import (
    NO_HEADERS,
    NO_SEQUENCE,
    SEQUENCE_MASK,
    Headers,
    Record,
    Row,
    Section,
)
from kraftwire.wire.varint import read_varint

# A header has at least the length of its name and the length of its value.
_HEADER_SIZE_MIN = 2

# Within a delta of the limits of 64 bits.
_BASE_OFFSET_MAX = 2**63 - 2**32
_BASE_TIMESTAMP_MAX = 2**62

# After a failed attempt at columns this many records are read one by one before the next; twice
# as many after each further failure, since most batches have no equal neighbours at all.
_STEP = 64

_UNUSUAL = (IndexError, Unusual, TypeError, UnicodeDecodeError, struct.error)

# A length is half of the raw varint: by its first and its second byte.
_HALF: Any = tuple(None if byte & 1 else (byte & 0x7F) >> 1 for byte in range(256))
_HALF_HIGH = tuple(byte << 6 for byte in range(0x80))
_NULL = 0x01


class RecordCursor:
    """Reads the records of a section, in order."""

    __slots__ = ("_is_odd", "_step", "index", "position", "section")

    def __init__(self, section: Section) -> None:
        self.section = section
        self.position = section.start
        self.index = 0
        self._step = _STEP
        self._is_odd = _is_odd(section)

    def take(self, count: int) -> list[Record]:
        """Return the next `count` records.

        Raises: WireError naming record and byte if they are damaged; the cursor then stays
        where it was.
        """
        rows, position = self._take(count)
        if position > self.section.end:
            rows, position = read_records(self.section, self.position, self.index, count)
        self.position = position
        self.index += count
        return rows

    def take_some(self, count: int) -> list[Record]:
        """Return at least one of the next `count` records: as many as are held at a time.

        Raises: WireError as `take`.
        """
        count = min(count, RECORDS_CHUNK_COUNT)
        if self.section.end - self.position > RECORDS_CHUNK_BYTES:
            within = _count_within if engine.core is None else engine.core.count_within
            section = self.section
            count = within(section.data, self.position, section.end, count, RECORDS_CHUNK_BYTES)
        return self.take(count)

    def check_end(self) -> None:
        """Raises: WireError unless all records were read."""
        if self.position != self.section.end:
            raise batch_error(
                self.section,
                "bytes are left after the last record",
                at=self.position,
                expected="the end of the batch",
                found=f"{self.section.end - self.position} bytes",
            )

    def _take(self, count: int) -> tuple[list[Record], int]:
        """Return the next records and the position after them, which is outside if any is unusual.
        """
        outside = self.section.end + 1
        if self._is_odd:
            return [], outside
        if engine.core is not None:
            done = _read_natively(self.section, self.position, count)
            if done is not None:
                return done
        rows: list[Record] = []
        position = self.position
        try:
            while len(rows) < count:
                run, position = self._run(position, count - len(rows))
                rows = rows + run if rows else run
        except _UNUSUAL:
            return [], outside
        return rows, position

    def _run(self, position: int, count: int) -> tuple[list[Record], int]:
        """Return some of the next records, at least one."""
        if count >= RUN_COUNT_MIN:
            rows, end = read_run(self.section, position, count)
            if rows:
                self._step = _STEP
                return rows, end
            count = min(count, self._step)
            self._step *= 2
        return _read_rows(self.section, position, count)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The sizes of a record's deltas, and how to read a head of that shape.

    `head` reads the deltas, not converted yet, and the first byte of the key's length;
    `size` is the total, including the attributes before them.
    """

    head: Callable[[bytes, int], tuple[Any, ...]]
    size: int
    times: Any
    offsets: Any


@cache
def _shape(time_size: int, offset_size: int) -> _Shape:
    head = struct.Struct(f">x{VARINT_CODES[time_size]}{VARINT_CODES[offset_size]}B")
    return _Shape(head.unpack_from, head.size, varint_values(time_size), varint_values(offset_size))


_FIRST = _shape(1, 1)


def _shape_at(data: bytes, p: int) -> _Shape:
    """Return the shape of the record at a position."""
    _, p = read_raw(data, p)
    _, offset = read_raw(data, p + 1)
    _, end = read_raw(data, offset)
    return _shape(offset - p - 1, end - offset)


def read_all(section: Section, count: int) -> list[Record]:
    """Return all records of a section.

    Raises: WireError naming record and byte if they are damaged or bytes are left after them.
    """
    if engine.core is not None:
        done = _read_natively(section, section.start, count)
        if done is not None and done[1] == section.end:
            return done[0]
    elif count < RUN_COUNT_MIN and not _is_odd(section):
        try:
            rows, position = _read_rows(section, section.start, count)
        except _UNUSUAL:
            position = -1
        if position == section.end:
            return rows
    cursor = RecordCursor(section)
    rows = cursor.take(count)
    cursor.check_end()
    return rows


def check_all(section: Section, count: int) -> None:
    """Check that a section holds `count` records, without creating them if the engine is in use.

    Raises: WireError as `read_all`.
    """
    core = engine.core
    if core is not None and core.check_records(section.data, section.start, section.end, count):
        return
    cursor = RecordCursor(section)
    while left := count - cursor.index:
        cursor.take_some(left)
    cursor.check_end()


def _read_natively(
    section: Section, position: int, count: int
) -> tuple[list[Record], int] | None:
    """Read records with the engine in C; return them and the position after them, None if it gives
    up.
    """
    try:
        rows: list[Record]
        rows, position = engine.core.read_records(
            Record,
            section.data,
            position,
            section.end,
            count,
            section.base_offset,
            section.base_timestamp,
            section.append_time,
            section.base_sequence,
        )
    except (OverflowError, TypeError, ValueError):
        return None
    return rows, position


def _count_within(data: bytes, start: int, end: int, count: int, size: int) -> int:
    """Return how many of `count` records begin within `size` bytes, at least one.

    Counting ends after the first record with an unusual length.
    """
    stop, p = min(end, start + size), start
    for index in range(count):
        if p >= stop:
            return max(index, 1)
        try:
            p, _ = _read_length(data, p)
        except (IndexError, Unusual):
            return index + 1
    return count


def _is_odd(section: Section) -> bool:
    """Whether a sum of base and delta could overflow 64 bits, where Java wraps around."""
    return (
        abs(section.base_offset) > _BASE_OFFSET_MAX
        or abs(section.base_timestamp) > _BASE_TIMESTAMP_MAX
    )


def _read_rows(section: Section, p: int, count: int) -> tuple[list[Record], int]:
    """Read records of any layout, one by one. Raises: any of `_UNUSUAL`."""
    rows: list[Row] = []
    # The first record of a batch, often the only one, has both deltas 0.
    shape = _FIRST if p == section.start else _shape_at(section.data, p)
    p = _read_alike(section, p, count, rows, shape)
    while len(rows) < count:
        last, shape = shape, _shape_at(section.data, p)
        if shape is last:
            raise Unusual
        p = _read_alike(section, p, count, rows, shape)
    return list(map(tuple.__new__, repeat(Record), rows)), p


def _read_alike(section: Section, p: int, count: int, rows: list[Row], shape: _Shape) -> int:
    """Append records to `rows` until there are `count` or one has another shape; return their end.

    Lengths of one and two bytes are read inline; a negative one, unless it is the usual null,
    has no entry in `_HALF` and makes the sum fail.
    """
    data, base_sequence, append_time = section.data, section.base_sequence, section.append_time
    base_offset, base_timestamp = section.base_offset, section.base_timestamp
    head, head_size, times, deltas = shape.head, shape.size, shape.times, shape.offsets
    has_sequence, sequence, ahead = base_sequence >= 0, NO_SEQUENCE, base_sequence - base_offset
    half, half_high, start = _HALF, _HALF_HIGH, p
    try:
        for _ in range(count - len(rows)):
            start = p
            if (size := data[p]) < 0x80:
                p += 1
                end = p + half[size]
            elif (high := data[p + 1]) < 0x80:
                p += 2
                end = p + half[size] + half_high[high]
            else:
                end, p = _read_length(data, p)
            time, delta, size = head(data, p)
            p += head_size
            # Added with LogAppendTime too: a sum with None shows that the shape is another.
            offset = base_offset + deltas[delta]
            timestamp = base_timestamp + times[time]
            if append_time is not None:
                timestamp = append_time
            if has_sequence:
                sequence = ahead + offset & SEQUENCE_MASK
            key = value = None
            if size != _NULL:
                if size < 0x80:
                    stop = p + half[size]
                else:
                    stop, p = _read_length(data, p - 1)
                key = data[p:stop]
                p = stop
            if (size := data[p]) == _NULL:
                p += 1
            else:
                if size < 0x80:
                    p += 1
                    stop = p + half[size]
                elif (high := data[p + 1]) < 0x80:
                    p += 2
                    stop = p + half[size] + half_high[high]
                else:
                    stop, p = _read_length(data, p)
                value = data[p:stop]
                p = stop
            headers, p = _read_headers(data, p) if data[p] else (NO_HEADERS, p + 1)
            if p != end:
                raise Unusual
            rows.append((offset, timestamp, key, value, headers, sequence))
    except (Unusual, TypeError):
        return start
    return p


def _read_length(data: bytes, p: int) -> tuple[int, int]:
    """Return the ends of a length-prefixed field and of its length."""
    raw, p = read_raw(data, p)
    if raw & 1:
        raise Unusual
    return p + (raw >> 1), p


def _read_headers(data: bytes, p: int) -> tuple[Headers, int]:
    """Return the headers of a record and the position after them."""
    count, p = read_raw(data, p)
    if count >> 1 > HEADERS_COUNT_FREE:
        raise Unusual
    headers = []
    for _ in range(count >> 1):
        size, p = read_raw(data, p)
        end = p + (size >> 1)
        name = data[p:end].decode()
        odd = size
        size, p = read_raw(data, end)
        value = None
        if not size & 1:
            value = data[p : (p := p + (size >> 1))]
        headers.append((name, value))
        count |= odd & 1
    if count & 1:
        raise Unusual
    return tuple(headers), p


def read_records(
    section: Section, position: int, index: int, count: int
) -> tuple[list[Record], int]:
    """Read `count` records, the first of which has this index; return them and where they end.

    Raises: WireError naming record, field and byte.
    """
    rows = []
    for record, end in iter_records(section, position, index, count):
        rows.append(record)
        position = end
    return rows, position


def iter_records(
    section: Section, position: int, index: int, count: int
) -> Iterator[tuple[Record, int]]:
    """Yield the records one by one, each with the position after it.

    Raises: WireError at the first damaged one; those before it are good.
    """
    for number in range(index, index + count):
        record, position = _Reader(section, position, f"records[{number}]").record()
        yield record, position


def batch_error(
    section: Section,
    problem: str,
    *,
    at: int,
    path: str = "",
    kind: type[WireError] = WireError,
    **found: str,
) -> WireError:
    """Return an error at a place of a section, with a text that also fits decompressed data."""
    if section.origin is None:
        problem = f"byte {at} of the decompressed records: {problem}"
        offset = section.position
    else:
        offset = section.origin + at
    return kind(problem, message="RecordBatch", version=2, path=path, offset=offset, **found)


class _Reader:
    """Reads the fields of one record, in order."""

    def __init__(self, section: Section, position: int, path: str) -> None:
        self._section = section
        self._data = section.data
        self._position = position
        self._end = section.end
        self._path = path

    def record(self) -> tuple[Record, int]:
        section = self._section
        start = self._position
        size = self._varint("length")
        if not 0 <= size <= self._end - self._position:
            have = f"0 to {self._end - self._position}"
            raise self._error("record length out of range", "length", start, have, size)
        self._end = self._position + size
        self._take(1, "attributes")
        time_delta = self._varint("timestamp_delta", 64)
        offset_delta = self._varint("offset_delta")
        key = self._bytes("key")
        value = self._bytes("value")
        headers = self._headers()
        if self._position != self._end:
            left = f"{self._end - self._position} bytes left"
            raise self._error(
                "a record is longer than its fields", "", self._position, "its end", left
            )
        timestamp = section.append_time
        if timestamp is None:
            timestamp = _int64(section.base_timestamp + time_delta)
        sequence = NO_SEQUENCE
        if section.base_sequence >= 0:
            sequence = section.base_sequence + offset_delta & SEQUENCE_MASK
        offset = _int64(section.base_offset + offset_delta)
        return Record(offset, timestamp, key, value, headers, sequence), self._position

    def _varint(self, name: str, bits: int = 32) -> int:
        start = self._position
        try:
            value, end = read_varint(self._data, start, bits)
        except WireError as error:
            raise self._error(
                error.problem, name, start, error.expected, error.found
            ) from None
        if end > self._end:
            raise self._error("the varint leads outside", name, start, *self._room(end - start))
        self._position = end
        return value

    def _take(self, size: int, name: str) -> bytes:
        start = self._position
        if size > self._end - start:
            raise self._error("the field leads outside", name, start, *self._room(size))
        self._position += size
        return self._data[start : start + size]

    def _bytes(self, name: str) -> bytes | None:
        size = self._varint(f"{name}_length")
        return None if size < 0 else self._take(size, name)

    def _headers(self) -> Headers:
        start = self._position
        count = self._varint("headers_count")
        count_max = (self._end - self._position) // _HEADER_SIZE_MIN
        if not 0 <= count <= count_max:
            raise self._error(
                "number of headers out of range", "headers_count", start, f"0 to {count_max}", count
            )
        if count > self._section.headers_max:
            raise batch_error(
                self._section,
                "the headers of a record are too many for the bytes of its batch",
                path=f"{self._path}.headers_count",
                at=start,
                kind=BombError,
                expected=f"at most {self._section.headers_max}",
                found=str(count),
            )
        headers = tuple(self._header(f"headers[{index}]") for index in range(count))
        return headers or NO_HEADERS

    def _header(self, path: str) -> tuple[str, bytes | None]:
        start = self._position
        size = self._varint(f"{path}.key_length")
        if size < 0:
            raise self._error("a header has no key", f"{path}.key_length", start, "0 or more", size)
        # As in Java, invalid UTF-8 becomes replacement characters.
        key = self._take(size, f"{path}.key").decode("utf-8", "replace")
        return key, self._bytes(f"{path}.value")

    def _room(self, need: int) -> tuple[str, str]:
        return f"{need} bytes", f"{max(0, self._end - self._position)} left of the record"

    def _error(
        self, problem: str, name: str, at: int, expected: str, found: object
    ) -> WireError:
        path = f"{self._path}.{name}" if name else self._path
        return batch_error(
            self._section, problem, path=path, at=at, expected=expected, found=str(found)
        )


def _int64(value: int) -> int:
    """Wrap a sum as a Java long does."""
    return (value + 2**63) % 2**64 - 2**63
