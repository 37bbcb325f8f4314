"""Reads runs of records of equal layout, as written by load generators and fixed-size events.

If neighbouring records have equal lengths, their bytes i are a fixed stride apart: a slice with
that stride is a column, and the interpreter compares and converts columns at the speed of C. A run
ends before the first record whose lengths differ, or whose deltas have another size or are
negative.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat

from kraftwire.records.record import NO_HEADERS, NO_SEQUENCE, SEQUENCE_MASK, Record, Section
from kraftwire.records.varint_tables import read_raw

__all__ = ["RUN_COUNT_MIN", "read_run"]

# Shorter runs cost more to set up than reading one by one.
RUN_COUNT_MIN = 24

# Bytes of a varint that is not negative: the only one, the first, an inner one, the last.
_ONLY = bytes(range(0x00, 0x80, 2))
_FIRST = bytes(range(0x80, 0x100, 2))
_INNER = bytes(range(0x80, 0x100))
_LAST = bytes(range(0x80))

# What a byte at the first, second and third place of a varint adds to the value.
_ADDS = tuple(tuple((byte & 0x7F) << shift >> 1 for byte in range(256)) for shift in (0, 7, 14))


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
