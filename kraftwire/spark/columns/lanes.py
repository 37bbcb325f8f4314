"""Batches gathered for lockstep: their records decompressed, in buffers of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.limits import RECORDS_SIZE_MAX
from kraftwire.records.record import RECORD_SIZE_MIN
from kraftwire.spark.columns.batches import Batches, unpacked
from kraftwire.spark.columns.heap import LONG_BYTES, give_back
from kraftwire.spark.columns.result import BYTES_MAX

__all__ = ["Lanes", "lanes_of"]

# About this many records are read at a time; a batch with more is left to the reader, which reads
# it in parts. A record needs some 150 bytes in the vectors of a step.
_COUNT_MAX = 32 * 1024

# With this padding, a buffer of one tiny record is long enough to be read in words.
_PADDING = 8

# Within a delta of the limit: sums may overflow 64 bits, where Java wraps around.
_BASE_OFFSET_MAX = 2**63 - 2**32
_BASE_TIMESTAMP_MAX = 2**62


@dataclass(frozen=True)
class Lanes:
    """Batches whose records are in one buffer.

    `data` is at least eight bytes long; `indexes` identify the batches; the records of each are
    `data[begins:ends]`. `odd` are batches that only the reader can judge.
    """

    batches: Batches
    data: bytes
    indexes: Any
    begins: Any
    ends: Any
    odd: list[int]


def lanes_of(batches: Batches, indexes: Any) -> Iterator[list[Lanes]]:
    """Return the batches with these indexes, in consecutive groups.

    A group has the uncompressed batches first, then the others; either part may be empty.
    """
    counts = batches.header["count"][indexes].astype(np.int64)
    # An impossible count is detected before anything is allocated for it.
    counts[(counts < 0) | (counts * RECORD_SIZE_MIN > _sizes_max(batches)[indexes])] = 0
    part = np.cumsum(counts) // _COUNT_MAX
    for each in np.split(indexes, np.flatnonzero(np.diff(part)) + 1):
        yield from _lanes_of(batches, each)


def _sizes_max(batches: Batches) -> Any:
    """Return the largest possible decompressed size of each batch."""
    return np.where(batches.codecs == 0, batches.sizes, RECORDS_SIZE_MAX)


def _lanes_of(batches: Batches, indexes: Any) -> Iterator[list[Lanes]]:
    header = batches.header[indexes]
    odd = (
        (np.abs(header["base_offset"]) > _BASE_OFFSET_MAX)
        | (header["base_timestamp"] > _BASE_TIMESTAMP_MAX)
        | (header["base_timestamp"] < -_BASE_TIMESTAMP_MAX)
        | (header["count"] < 0)
        | (header["count"] > _COUNT_MAX)
    )
    is_packed = batches.codecs[indexes] != 0
    is_plain = ~(odd | is_packed | (header["count"] == 0))
    begin = 0
    packed = np.flatnonzero(is_packed & ~odd & (header["count"] != 0)).tolist()
    for places, found in _unpacked(batches, indexes, packed):
        here = slice(begin, places)
        plain = _plain(batches, indexes[here][is_plain[here]], indexes[here][odd[here]])
        yield [plain, found.pop()]
        begin = places
    rest = slice(begin, None)
    if len(indexes[rest]):
        yield [_plain(batches, indexes[rest][is_plain[rest]], indexes[rest][odd[rest]])]


def _plain(batches: Batches, plain: Any, odd: Any) -> Lanes:
    """Return the lanes of uncompressed batches, and the odd ones among all."""
    begins = batches.positions[plain]
    ends = begins + batches.sizes[plain]
    lanes = Lanes(batches, batches.buffer, plain, begins + HEADER_SIZE, ends, odd.tolist())
    return _bounded(lanes)


def _unpacked(
    batches: Batches, indexes: Any, places: list[int]
) -> Iterator[tuple[int, list[Lanes]]]:
    """Yield lanes of the compressed batches at some places of the indexes, each with its end.

    Each comes in a list, which the caller empties, so that its bytes are released early.
    """
    parts: list[bytes] = []
    done: list[int] = []
    odd: list[int] = []
    size = 0
    for place in places:
        index = int(indexes[place])
        data = unpacked(batches, index)
        if data is None:
            odd.append(index)
            continue
        parts.append(data)
        done.append(index)
        size += len(data)
        is_long = len(data) >= LONG_BYTES
        del data
        if size >= BYTES_MAX:
            yield place + 1, [_joined(batches, parts, done, odd)]
            parts, done, odd, size = [], [], [], 0
            if is_long:
                give_back()
    if done or odd:
        yield len(indexes), [_joined(batches, parts, done, odd)]


def _joined(batches: Batches, parts: list[bytes], done: list[int], odd: list[int]) -> Lanes:
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    begins = np.concatenate(([0], ends[:-1])).astype(np.int64) if parts else ends
    if len(parts) == 1 and len(parts[0]) >= _PADDING:
        data = parts[0]
    else:
        data = b"".join([*parts, bytes(_PADDING)])
    parts.clear()
    return _bounded(Lanes(batches, data, np.array(done, np.int64), begins, ends, odd))


def _bounded(lanes: Lanes) -> Lanes:
    """Drop the batches that claim more records than their bytes can hold."""
    counts = lanes.batches.header["count"][lanes.indexes]
    fits = counts <= (lanes.ends - lanes.begins) // RECORD_SIZE_MIN
    if fits.all():
        return lanes
    return Lanes(
        lanes.batches,
        lanes.data,
        lanes.indexes[fits],
        lanes.begins[fits],
        lanes.ends[fits],
        lanes.odd + lanes.indexes[~fits].tolist(),
    )
