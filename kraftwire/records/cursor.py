"""Reads the records of a magic 2 batch, fast.

Straight-line code without checks: at any surprise (a varint longer than usual, a length that
leads outside, a record that does not end where it says) the chunk is read again by
kraftwire.records.explain, which either copes or names the byte. Runs of records of equal layout
are cut in columns by kraftwire.records.columns.

Source: Kafka's `DefaultRecord`.
"""

from __future__ import annotations

from kraftwire.records.columns import RUN_COUNT_MIN, Stumble, read_raw, read_run
from kraftwire.records.explain import read_records
from kraftwire.records.record import (
    NO_HEADERS,
    NO_SEQUENCE,
    SEQUENCE_MASK,
    Headers,
    Record,
    Section,
)

__all__ = ["RecordCursor"]

# Further out the sum of base and delta could leave 64 bits, where Java wraps around.
_BASE_OFFSET_MAX = 2**63 - 2**32
_BASE_TIMESTAMP_MAX = 2**62

# After a failed attempt at columns this many records are read one by one before the next; twice
# as many after each further failure, since most batches have no equal neighbours at all.
_STEP = 64

_STUMBLES = (IndexError, Stumble, UnicodeDecodeError)

_new = tuple.__new__


class RecordCursor:
    """Takes records off a section, in order."""

    __slots__ = ("_is_odd", "_step", "index", "position", "section")

    def __init__(self, section: Section) -> None:
        self.section = section
        self.position = section.start
        self.index = 0
        self._step = _STEP
        self._is_odd = (
            abs(section.base_offset) > _BASE_OFFSET_MAX
            or abs(section.base_timestamp) > _BASE_TIMESTAMP_MAX
        )

    def take(self, count: int) -> list[Record]:
        """The next `count` records.

        Raises: WireError naming record and byte if they are damaged; the cursor then stays
        where it was.
        """
        rows, position = self._take(count)
        if position > self.section.end:
            rows, position = read_records(self.section, self.position, self.index, count)
        self.position = position
        self.index += count
        return rows

    def _take(self, count: int) -> tuple[list[Record], int]:
        """The next records and the position behind them, outside if anything is unusual."""
        outside = self.section.end + 1
        if self._is_odd:
            return [], outside
        rows: list[Record] = []
        position = self.position
        try:
            while len(rows) < count:
                run, position = self._run(position, count - len(rows))
                rows = rows + run if rows else run
        except _STUMBLES:
            return [], outside
        return rows, position

    def _run(self, position: int, count: int) -> tuple[list[Record], int]:
        """Some of the next records, at least one."""
        if count >= RUN_COUNT_MIN:
            rows, end = read_run(self.section, position, count)
            if rows:
                self._step = _STEP
                return rows, end
            count = min(count, self._step)
            self._step *= 2
        return _read_rows(self.section, position, count)


def _read_rows(section: Section, p: int, count: int) -> tuple[list[Record], int]:
    """Read records one by one. Raises: IndexError, Stumble or UnicodeDecodeError.

    Varints are zig-zag: the raw value is twice what is meant, and odd for negatives.
    """
    data, base_sequence, append_time = section.data, section.base_sequence, section.append_time
    base_offset, base_timestamp = section.base_offset, section.base_timestamp
    has_sequence, sequence, timestamp = base_sequence >= 0, NO_SEQUENCE, append_time or 0
    rows: list[Record] = []
    for _ in range(count):
        if (size := data[p]) < 0x80:
            p += 1
        elif (high := data[p + 1]) < 0x80:
            size, p = size + (high << 7) - 0x80, p + 2
        else:
            size, p = read_raw(data, p)
        twice_end = p + p + size
        p += 1  # Attributes of a record mean nothing so far.
        if (delta := data[p]) < 0x80:
            p += 1
        elif (high := data[p + 1]) < 0x80:
            delta, p = delta + (high << 7) - 0x80, p + 2
        else:
            delta, p = read_raw(data, p)
        if append_time is None:
            timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))
        if (delta := data[p]) < 0x80:
            p += 1
        elif (high := data[p + 1]) < 0x80:
            delta, p = delta + (high << 7) - 0x80, p + 2
        else:
            delta, p = read_raw(data, p)
        odd = delta & 1
        delta >>= 1
        if has_sequence:
            sequence = base_sequence + delta & SEQUENCE_MASK
        if (size := data[p]) < 0x80:
            p += 1
        else:
            size, p = read_raw(data, p)
        key = None
        if not size & 1:
            key = data[p : (p := p + (size >> 1))]
        if (size := data[p]) < 0x80:
            p += 1
        elif (high := data[p + 1]) < 0x80:
            size, p = size + (high << 7) - 0x80, p + 2
        else:
            size, p = read_raw(data, p)
        value = None
        if not size & 1:
            value = data[p : (p := p + (size >> 1))]
        headers, p = _read_headers(data, p) if data[p] else (NO_HEADERS, p + 1)
        if p + p != twice_end or odd:
            raise Stumble
        rows.append(_new(Record, (base_offset + delta, timestamp, key, value, headers, sequence)))
    return rows, p


def _read_headers(data: bytes, p: int) -> tuple[Headers, int]:
    """The headers of a record and the position behind them."""
    count, p = read_raw(data, p)
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
        raise Stumble
    return tuple(headers), p
