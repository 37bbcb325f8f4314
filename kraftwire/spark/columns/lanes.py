"""Batches gathered for lockstep: their records decompressed, in buffers of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kraftwire.errors import WireError
from kraftwire.records.compression import CODEC_MASK, decompress
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.record import RECORD_SIZE_MIN
from kraftwire.spark.columns.batches import Batches

__all__ = ["Lanes", "lanes_of"]

# A buffer of decompressed records is closed when it is this long; a batch may exceed it by 256 MiB.
_UNPACKED_BYTES = 64 * 1024 * 1024

# So a buffer of one tiny record is long enough to be read in words.
_PADDING = 8

# Nearer to the edge than any delta: sums may leave 64 bits, where Java wraps around.
_BASE_OFFSET_MAX = 2**63 - 2**32
_BASE_TIMESTAMP_MAX = 2**62


@dataclass(frozen=True)
class Lanes:
    """Batches whose records are in one buffer.

    Shape: `data` is at least eight bytes long; `indexes` are those of the batches; the records of
    each are `data[begins:ends]`. `odd` are batches that only the reader can judge.
    """

    batches: Batches
    data: bytes
    indexes: Any
    begins: Any
    ends: Any
    odd: list[int]


def lanes_of(batches: Batches, indexes: Any) -> Iterator[list[Lanes]]:
    """The batches with these indexes, in groups that follow each other.

    Shape: a group has those that are not compressed first, then the others; one of the two may
    be missing.
    """
    header = batches.header[indexes]
    odd = (
        (np.abs(header["base_offset"]) > _BASE_OFFSET_MAX)
        | (header["base_timestamp"] > _BASE_TIMESTAMP_MAX)
        | (header["base_timestamp"] < -_BASE_TIMESTAMP_MAX)
        | (header["count"] < 0)
    )
    is_packed = header["attributes"] & CODEC_MASK != 0
    is_plain = ~(odd | is_packed | (header["count"] == 0))
    begin = 0
    packed = np.flatnonzero(is_packed & ~odd & (header["count"] != 0)).tolist()
    for places, lanes in _unpacked(batches, indexes, packed):
        here = slice(begin, places)
        yield _group(batches, indexes[here][is_plain[here]], indexes[here][odd[here]], [lanes])
        begin = places
    rest = slice(begin, None)
    if len(indexes[rest]):
        yield _group(batches, indexes[rest][is_plain[rest]], indexes[rest][odd[rest]], [])


def _group(batches: Batches, plain: Any, odd: Any, packed: list[Lanes]) -> list[Lanes]:
    begins = batches.positions[plain]
    ends = begins + batches.sizes[plain]
    lanes = Lanes(batches, batches.buffer, plain, begins + HEADER_SIZE, ends, odd.tolist())
    return [_bounded(lanes), *packed]


def _unpacked(batches: Batches, indexes: Any, places: list[int]) -> Iterator[tuple[int, Lanes]]:
    """Lanes of the compressed batches at some places of the indexes, each with where it ends."""
    view = memoryview(batches.buffer)
    positions, sizes = batches.positions[indexes], batches.sizes[indexes]
    codecs = batches.header["attributes"][indexes] & CODEC_MASK
    parts: list[bytes] = []
    done: list[int] = []
    odd: list[int] = []
    size = 0
    for place in places:
        start, end = int(positions[place]) + HEADER_SIZE, int(positions[place] + sizes[place])
        try:
            parts.append(decompress(int(codecs[place]), view[start:end]))
        except WireError:
            odd.append(int(indexes[place]))
            continue
        done.append(int(indexes[place]))
        size += len(parts[-1])
        if size >= _UNPACKED_BYTES:
            yield place + 1, _joined(batches, parts, done, odd)
            parts, done, odd, size = [], [], [], 0
    if done or odd:
        yield len(indexes), _joined(batches, parts, done, odd)


def _joined(batches: Batches, parts: list[bytes], done: list[int], odd: list[int]) -> Lanes:
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    begins = np.concatenate(([0], ends[:-1])).astype(np.int64) if parts else ends
    data = b"".join([*parts, bytes(_PADDING)])
    return _bounded(Lanes(batches, data, np.array(done, np.int64), begins, ends, odd))


def _bounded(lanes: Lanes) -> Lanes:
    """Leave out the batches that announce more records than their bytes can hold."""
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
