"""Reads runs of records whose keys and values may have any usual length, and have no headers.

Most producers write such records. One call of `struct` reads everything before a value, in one of
two formats, by the size of the record's length; tables of all words of two bytes replace the
decoding of varints. A run ends before the first record whose deltas have another size, or that
has headers, a long key or value, or damage.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kraftwire.records.record import (
    NO_HEADERS,
    NO_SEQUENCE,
    SEQUENCE_MASK,
    Record,
    Row,
    Section,
    to_records,
)
from kraftwire.records.words import (
    NULL_LENGTH,
    PAIR,
    WORD_CODES,
    Stumble,
    length_words,
    read_raw,
    size_words,
    words,
)

__all__ = ["read_varied"]

_NULL = 0x01

# How `struct` reads the length of a record.
_LENGTH_CODES = (WORD_CODES[1], WORD_CODES[2])

_Unpack = Callable[[bytes, int], tuple[Any, ...]]
_ODD = (IndexError, Stumble, TypeError, struct.error)


def read_varied(section: Section, p: int, count: int) -> tuple[list[Record], int]:
    """Read a run of at most `count` records; return them and the position after them."""
    try:
        heads, key_size = _heads_at(section.data, p)
        heads[key_size]
    except _ODD:
        return [], p
    end = [p]
    return list(to_records(_rows(section, heads, key_size, count, end))), end[0]


def _rows(
    section: Section, heads: _Heads, key_size: int, count: int, end: list[int]
) -> Iterator[Row]:
    """Yield at most `count` rows from the place in `end`, which is moved after them.

    What does not fit makes an index or a sum fail; then the record is left to the caller.
    """
    data, base_sequence, append_time = section.data, section.base_sequence, section.append_time
    base_offset, base_timestamp = section.base_offset, section.base_timestamp
    has_sequence, sequence, ahead = base_sequence >= 0, NO_SEQUENCE, base_sequence - base_offset
    short, long, fixed, is_null = heads[key_size]
    times, deltas = heads.times, heads.offsets
    sizes, lengths = size_words(), length_words()
    start = p = end[0]
    try:
        for _ in range(count):
            start = p
            if data[p] < 0x80:
                size, time, delta, found, key, word = short(data, p)
            else:
                p += 1
                size, time, delta, found, key, word = long(data, start)
            if found != key_size:
                short, long, fixed, is_null = heads[found]
                read, key_size = (short if p == start else long), found
                size, time, delta, found, key, word = read(data, start)
            size = sizes[size]
            length = lengths[word]
            p += size
            # The last byte, a count of no headers, is where both lengths say.
            if size - length == (fixed if word < 0x8000 else fixed + 1):
                value = data[p - length : p]
            elif length == NULL_LENGTH and size == fixed:
                value = None
            else:
                raise Stumble
            if data[p]:
                raise Stumble
            # Added with LogAppendTime too: a sum with None shows that the deltas have another size.
            offset = base_offset + deltas[delta]
            timestamp = base_timestamp + times[time]
            if append_time is not None:
                timestamp = append_time
            if has_sequence:
                sequence = ahead + offset & SEQUENCE_MASK
            if is_null:
                key = None
            p += 1
            yield offset, timestamp, key, value, NO_HEADERS, sequence
    except _ODD:
        p = start
    end[0] = p


# The readers of everything from a record's length, of one or of two bytes, to the length of its
# value; the size of a record without its value, if the value's length has one byte; and whether
# the key is null.
_Head = tuple[_Unpack, _Unpack, int, bool]


class _Heads(dict[int, _Head]):
    """How to read records whose deltas have certain sizes, by the byte of their key's length."""

    def __init__(self, time_size: int, offset_size: int) -> None:
        super().__init__()
        self.times = words(time_size)
        self.offsets = words(offset_size)
        self._deltas = f"x{WORD_CODES[time_size]}{WORD_CODES[offset_size]}"
        self._size = 1 + time_size + offset_size + 1 + 1 + 1

    def __missing__(self, key_size: int) -> _Head:
        if key_size >= PAIR or (key_size & 1 and key_size != _NULL):
            raise Stumble
        key = key_size >> 1
        head = f"{self._deltas}B{key}sH"
        short, long = (struct.Struct(f">{code}{head}").unpack_from for code in _LENGTH_CODES)
        made = self[key_size] = short, long, self._size + key, key_size == _NULL
        return made


def _heads_at(data: bytes, p: int) -> tuple[_Heads, int]:
    """Return how to read the record at a position and those like it, and its key's length.

    Raises: IndexError or Stumble.
    """
    size, body = read_raw(data, p)
    _, delta = read_raw(data, body + 1)
    _, key = read_raw(data, delta)
    if data[body + (size >> 1) - 1]:
        raise Stumble
    return _heads(delta - body - 1, key - delta), data[key]


@cache
def _heads(time_size: int, offset_size: int) -> _Heads:
    return _Heads(time_size, offset_size)
