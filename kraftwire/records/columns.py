"""Reads runs of records of equal layout, as written by load generators and fixed-size events.

If neighbouring records have equal lengths, their bytes i are a fixed stride apart: a slice with
that stride is a column, and the interpreter compares and converts columns at the speed of C. A run
ends before the first record whose lengths differ, or whose deltas have another size or are
negative. `varint_values` are tables of varints that `struct` reads, for records of any layout.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from typing import Any

from kraftwire.records.record import NO_HEADERS, NO_SEQUENCE, SEQUENCE_MASK, Record, Section

_RAW_BITS = 32

# A byte from this value on is not the last one of a varint.
_MORE = 0x80

# How `struct` reads a varint, by its size, to be looked up in `varint_values`.
VARINT_CODES = {1: "B", 2: "H", 3: "3s", 4: "4s", 5: "5s"}

# Varints of three bytes and more are kept once seen.
_KEPT_MAX = 16_512

# Shorter runs cost more to set up than reading one by one.
RUN_COUNT_MIN = 24

# Bytes of a varint that is not negative: the only one, the first, an inner one, the last.
_ONLY = bytes(range(0x00, 0x80, 2))
_FIRST = bytes(range(0x80, 0x100, 2))
_INNER = bytes(range(0x80, 0x100))
_LAST = bytes(range(0x80))

# The summand of each byte at the first, second and third place of a varint.
_ADDS = tuple(tuple((byte & 0x7F) << shift >> 1 for byte in range(256)) for shift in (0, 7, 14))


class Unusual(Exception):
    """The bytes are not what the fast code expects."""


def read_raw(data: bytes, p: int) -> tuple[int, int]:
    """Return the raw value of a varint of at most 32 bits and the position after it.

    Raises: IndexError or Unusual.
    """
    raw = data[p] & 0x7F
    if data[p] < 0x80:
        return raw, p + 1
    for shift in range(7, _RAW_BITS, 7):
        p += 1
        byte = data[p]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80 and raw >> _RAW_BITS == 0:
            return raw, p + 1
    raise Unusual


def _value(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


# Values of varints of one byte; None stands where there is none.
_SHORT: list[Any] = [_value(byte) for byte in range(_MORE)] + [None] * _MORE


class _Long(dict[bytes, int]):
    """Values of varints of three bytes or more, by their bytes. Raises: Unusual."""

    def __missing__(self, varint: bytes) -> int:
        # A further byte shows whether the varint ends where this one should.
        raw, end = read_raw(varint + b"\x00", 0)
        if end != len(varint):
            raise Unusual
        value = _value(raw)
        if len(self) < _KEPT_MAX:
            self[varint] = value
        return value


_LONG = _Long()


def varint_values(size: int) -> Any:
    """Return the values of varints of a size, by what VARINT_CODES make of them.

    For one byte or two it is a list, in which None stands where there is no varint.
    """
    if size == 1:
        return _SHORT
    return _pairs() if size == 2 else _LONG


@cache
def _pairs() -> list[Any]:
    table: list[int | None] = [None] * (_MORE << 8)
    for low in range(_MORE):
        table += [_value(low | high << 7) for high in range(_MORE)]
        table += [None] * _MORE
    return table


@dataclass(slots=True)
class _Layout:
    """The positions of a record's fields, counted from its first byte.

    Each field is a range of places.
    """

    size: range
    time_delta: range
    offset_delta: range
    key_size: range
    key: range | None
    value_size: range
    value: range | None
    stride: int


def read_run(section: Section, start: int, count: int) -> tuple[list[Record], int]:
    """Read a run of at most `count` equal records; return them and the position after them.

    The list is empty if no run is worth it. Raises: IndexError or Unusual.
    """
    data = section.data
    at = _layout(data, start)
    if at is None:
        return [], start
    count = _run_count(data, start, at, min(count, (section.end - start) // at.stride))
    if count < RUN_COUNT_MIN:
        return [], start
    run = _Run(data[start : start + count * at.stride], at.stride, count)
    offsets = run.values(at.offset_delta, section.base_offset)
    timestamps: Iterable[int]
    if section.append_time is None:
        timestamps = run.values(at.time_delta, section.base_timestamp)
    else:
        timestamps = repeat(section.append_time)
    sequences: Iterable[int] = repeat(NO_SEQUENCE)
    if section.base_sequence >= 0:
        ahead = section.base_sequence - section.base_offset
        sequences = [ahead + offset & SEQUENCE_MASK for offset in offsets]
    fields = zip(
        offsets, timestamps, run.payloads(at.key), run.payloads(at.value), repeat(NO_HEADERS),
        sequences,
    )
    return list(map(tuple.__new__, repeat(Record), fields)), start + len(run.data)


def _layout(data: bytes, start: int) -> _Layout | None:
    """Return the layout of the record at `start`; None if its kind has no runs."""
    size, body = read_raw(data, start)
    _, offset_delta = read_raw(data, body + 1)
    _, key_size = read_raw(data, offset_delta)
    key_length, key = read_raw(data, key_size)
    value_size = key if key_length & 1 else key + (key_length >> 1)
    value_length, value = read_raw(data, value_size)
    end = value if value_length & 1 else value + (value_length >> 1)
    has_usual_deltas = key_size - offset_delta <= len(_ADDS) >= offset_delta - body - 1
    if data[end] or end + 1 - body << 1 != size or not has_usual_deltas:
        return None
    return _Layout(
        size=range(body - start),
        time_delta=range(body + 1 - start, offset_delta - start),
        offset_delta=range(offset_delta - start, key_size - start),
        key_size=range(key_size - start, key - start),
        key=None if key_length & 1 else range(key - start, value_size - start),
        value_size=range(value_size - start, value - start),
        value=None if value_length & 1 else range(value - start, end - start),
        stride=end + 1 - start,
    )


def _run_count(data: bytes, start: int, at: _Layout, count: int) -> int:
    """Return how many of the next `count` records have the first one's layout."""
    for place, allowed in _conditions(data, start, at):
        column = data[start + place : start + count * at.stride : at.stride]
        count -= len(column.lstrip(allowed))
        if count < RUN_COUNT_MIN:
            break
    return count


def _conditions(data: bytes, start: int, at: _Layout) -> Iterator[tuple[int, bytes]]:
    """Return places in a record and the bytes that are allowed there."""
    for place in chain(at.size, at.key_size, at.value_size, (at.stride - 1,)):
        yield place, data[start + place : start + place + 1]
    for places in (at.offset_delta, at.time_delta):
        if len(places) == 1:
            yield places[0], _ONLY
            continue
        yield places[0], _FIRST
        for place in places[1:-1]:
            yield place, _INNER
        yield places[-1], _LAST


@dataclass(slots=True)
class _Run:
    """The bytes of a run of records of one layout."""

    data: bytes
    stride: int
    count: int

    def values(self, places: range, base: int) -> list[int]:
        """Return the values of a delta field, added to a base."""
        columns = [self.data[place :: self.stride] for place in places]
        one, two, three = _ADDS
        if len(columns) == 1:
            return [base + one[a] for a in columns[0]]
        if len(columns) == 2:
            return [base + one[a] + two[b] for a, b in zip(*columns, strict=True)]
        return [base + one[a] + two[b] + three[c] for a, b, c in zip(*columns, strict=True)]

    def payloads(self, places: range | None) -> Iterable[bytes | None]:
        """Return the keys or values."""
        if places is None:
            return repeat(None)
        shape = f"{places.start}x{len(places)}s{self.stride - places.stop}x"
        return chain.from_iterable(struct.iter_unpack(shape, self.data))
