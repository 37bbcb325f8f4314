"""The positions of all records of many batches: their lengths, followed in lockstep.

Record i of every batch is passed in one vector step. When few batches are left, a loop over their
bytes is faster than vectors of few elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftwire.spark.columns.words import Words, split

__all__ = ["starts_of"]

# From this many batches on, a vector step costs less than as many steps of a loop.
_LANES_MIN = 160

_LENGTH_BYTES = 4

# A length is half of the raw varint; a negative one leads nowhere, which shows at the end of the
# batch.
_HALF = tuple((byte & 0x7F) >> 1 for byte in range(256))
_HALF_HIGH = tuple((byte & 0x7F) << 6 for byte in range(256))


def starts_of(data: bytes, words: Words, begins: Any, counts: Any) -> tuple[Any, Any]:
    """Return the positions of all records, batch after batch, and each batch's end.

    `begins` are where the records of each batch begin, `counts` how many there are, at
    least one. Lengths are not checked: whatever leads outside is wrong where it ends.
    """
    order = np.argsort(-counts, kind="stable")
    places = (np.cumsum(counts) - counts)[order]
    left = counts[order]
    positions = begins[order]
    starts = np.empty(int(counts.sum()), np.int64)
    step, active = 0, len(order)
    while True:
        active = int(np.searchsorted(-left, -step, side="left"))
        if active < _LANES_MIN:
            break
        now = positions[:active]
        starts[places[:active] + step] = now
        lengths, sizes, _ = split(words.at(now), _LENGTH_BYTES)
        now += (sizes + (lengths >> np.uint64(1))).view(np.int64)
        step += 1
    for lane in range(active):
        begin, count = int(positions[lane]), int(left[lane]) - step
        place = int(places[lane]) + step
        found, positions[lane] = _follow(data, begin, count)
        starts[place : place + count] = found
    ends = np.empty_like(positions)
    ends[order] = positions
    return starts, ends


def _follow(data: bytes, position: int, count: int) -> tuple[list[int], int]:
    """Return the positions of `count` records from one on, and where the last one ends."""
    half, half_high = _HALF, _HALF_HIGH
    starts: list[int] = []
    note = starts.append
    try:
        for _ in range(count):
            note(position)
            if (first := data[position]) < 0x80:
                position += 1 + half[first]
            elif (second := data[position + 1]) < 0x80:
                position += 2 + half[first] + half_high[second]
            else:
                position = _far(data, position)
    except IndexError:
        # A length led outside the bytes; then the end is invalid.
        position = len(data) + 1
        starts += [position] * (count - len(starts))
    return starts, position


def _far(data: bytes, position: int) -> int:
    """Return the end of a record whose length takes more than two bytes."""
    length = 0
    for index in range(_LENGTH_BYTES):
        byte = data[position + index]
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return position + index + 1 + (length >> 1)
    return position + _LENGTH_BYTES + (length >> 1)
