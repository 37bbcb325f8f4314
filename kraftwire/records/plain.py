"""Records with only a value, and batches of them, as in metadata logs and snapshots.

A record is: its length, attributes 0, timestamp delta 0, offset delta, null key, the value's
length, the value, no headers. Lengths and deltas are varints.

Source: Kafka's `DefaultRecord`; R-ACC-5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat

from kraftwire.records.crc import crc32c
from kraftwire.records.header import BEFORE_BODY, BODY, LENGTH_MIN, MAGIC
from kraftwire.records.record import NO_SEQUENCE
from kraftwire.wire.varint import varint

# Bytes of a record without its value, while batches are below 128 MiB: two for attributes and
# timestamp delta, one each for key and headers, and at most four for each of length, offset delta
# and the value's length.
RECORD_OVERHEAD_MAX = 16

_NO_DELTA = b"\x00\x00"
_NULL_KEY = b"\x01"
_NO_HEADERS = b"\x00"

# Attributes, timestamp delta, key and headers take a byte each.
_FIXED = 4

# From this many records on, the preparations of `_many` are worth it.
_MANY = 8

# The sizes of offset deltas, and the first delta that takes more bytes.
_WIDTHS = ((1, 1 << 6), (2, 1 << 13), (3, 1 << 20), (4, 1 << 27), (5, 1 << 31))

_KEPT_MAX = 20_000
_DELTAS_KEPT_MAX = 1 << 17


class _Varints(dict[int, bytes]):
    """Varints of sizes and deltas, cached because they repeat."""

    def __missing__(self, value: int) -> bytes:
        data = varint(value)
        if len(self) < _KEPT_MAX:
            self[value] = data
        return data


class _Before(dict[int, bytes]):
    """The bytes before an offset delta of one width, by the size of the value."""

    def __init__(self, width: int) -> None:
        self._width = width

    def __missing__(self, size: int) -> bytes:
        length = _FIXED + self._width + len(_VARINTS[size]) + size
        data = varint(length) + _NO_DELTA
        if len(self) < _KEPT_MAX:
            self[size] = data
        return data


class _Between(dict[int, bytes]):
    """The bytes between offset delta and value, by the size of the value."""

    def __missing__(self, size: int) -> bytes:
        data = _NULL_KEY + varint(size)
        if len(self) < _KEPT_MAX:
            self[size] = data
        return data


_VARINTS = _Varints()
_BEFORE = {width: _Before(width) for width, _ in _WIDTHS}
_BETWEEN = _Between()
_deltas: list[bytes] = []


def data_batch(base_offset: int, epoch: int, timestamp: int, values: Sequence[bytes]) -> bytes:
    """Return a batch of records with these values, null keys and one timestamp (R-ACC-5).

    The numbers must be in the range of their fields. The general builder returns the same bytes and
    takes five times as long.
    """
    payload = plain_records(values)
    count = len(values)
    body = BODY.pack(0, count - 1, timestamp, timestamp, -1, -1, NO_SEQUENCE, count)
    crc = crc32c(payload, crc32c(body))
    length = LENGTH_MIN + len(payload)
    return BEFORE_BODY.pack(base_offset, length, epoch, MAGIC, crc) + body + payload


def plain_size(values: Sequence[bytes], first_delta: int = 0) -> int:
    """Return the size that `plain_records` has for these values, from an offset delta on."""
    sizes = list(map(len, values))
    total = sum(sizes) + sum(map(len, map(_BETWEEN.__getitem__, sizes))) + len(sizes)
    begin = 0
    for width, end in _WIDTHS:
        here = sizes[begin : max(begin, end - first_delta)]
        total += sum(map(len, map(_BEFORE[width].__getitem__, here))) + width * len(here)
        begin += len(here)
    return total


def plain_records(values: Sequence[bytes]) -> bytes:
    """Return records with these values and offset deltas from 0 on."""
    return _few(values) if len(values) < _MANY else _many(values)


def _few(values: Sequence[bytes]) -> bytes:
    """Encode one after the other, without preparations."""
    varints = _VARINTS
    parts: list[bytes] = []
    for delta, value in enumerate(values):
        head = _NO_DELTA + varints[delta] + _NULL_KEY + varints[len(value)]
        parts += (varints[len(head) + len(value) + 1], head, value, _NO_HEADERS)
    return b"".join(parts)


def _many(values: Sequence[bytes]) -> bytes:
    """Encode by columns, without a Python loop over the records."""
    count, begin = len(values), 0
    sizes = list(map(len, values))
    deltas = _deltas_below(count)
    groups: list[Iterable[tuple[bytes, ...]]] = []
    for width, end in _WIDTHS:
        here = slice(begin, end)
        columns = (
            map(_BEFORE[width].__getitem__, sizes[here]),
            deltas[here],
            map(_BETWEEN.__getitem__, sizes[here]),
            values[here],
        )
        groups.append(zip(*columns, repeat(_NO_HEADERS), strict=False))
        begin = end
        if begin >= count:
            break
    return b"".join(chain.from_iterable(chain.from_iterable(groups)))


def _deltas_below(count: int) -> list[bytes]:
    """Return the varints of 0, 1, 2, ... below a number."""
    if count > _DELTAS_KEPT_MAX:
        return list(map(varint, range(count)))
    if len(_deltas) < count:
        _deltas.extend(map(varint, range(len(_deltas), count)))
    return _deltas[:count]
