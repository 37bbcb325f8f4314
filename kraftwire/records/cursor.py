"""Reads the records of a magic 2 batch, fast.

Straight-line code without checks: at any surprise (a varint longer than usual, a length that
leads outside, a record that does not end where it says) the chunk is read again by
kraftwire.records.explain, which either copes or names the byte. kraftwire.records.columns cuts runs
of records of equal layout by columns. The engine in C comes first where it is in use; the code here
handles what it gives up on.

Source: Kafka's `DefaultRecord`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import Any

from kraftwire import engine
from kraftwire.records.columns import RUN_COUNT_MIN, read_run
from kraftwire.records.explain import batch_error, read_records
from kraftwire.records.limits import HEADERS_COUNT_FREE, RECORDS_CHUNK_BYTES, RECORDS_CHUNK_COUNT
from kraftwire.records.record import (
    NO_HEADERS,
    NO_SEQUENCE,
    SEQUENCE_MASK,
    Headers,
    Record,
    Row,
    Section,
)
from kraftwire.records.varint_tables import VARINT_CODES, Unusual, read_raw, varint_values

__all__ = ["RecordCursor", "check_all", "read_all"]

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
