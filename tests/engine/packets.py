"""Random bytes of captures through both engines. Needs numpy, which is part of Spark's extra."""

from __future__ import annotations

import random
import struct
from collections import Counter
from typing import Any

from kraftwire import engine
from kraftwire.limits import PACKET_BYTES_MAX

__all__ = ["search_packets"]

_LENGTHS = (0, 61, PACKET_BYTES_MAX, PACKET_BYTES_MAX + 1, 2**31, 2**32 - 1)


def search_packets(source: random.Random) -> Counter[str]:
    """Compare the engines on one run of records and on ranges of its bytes.

    Returns counts as `search_messages` does. Raises: AssertionError at the first difference.
    """
    import numpy as np

    from kraftwire.spark.captures.headers import join_ranges, record_places

    data = _records(source)
    at = min(source.choice((0, 0, 0, 16, len(data))), len(data))
    places = [each.tolist() for each in _both(record_places, data, at)]
    assert places[0] == places[1], f"{data.hex()} from {at} on: {places}"
    starts = [source.randint(0, len(data)) for _ in range(source.randrange(20))]
    sizes = [source.randint(0, len(data) - start) for start in starts]
    ranges = np.array(starts, np.int64), np.array(sizes, np.int64)
    joined = _both(join_ranges, data, *ranges)
    assert joined[0] == joined[1], f"{data.hex()}: {starts} {sizes}"
    parts = [data[start:][:size] for start, size in zip(starts, sizes, strict=True)]
    assert joined[0] == b"".join(parts)
    return Counter({"captures": 1, "packets kept": len(places[0])})


def _both(work: Any, *arguments: Any) -> list[Any]:
    before = engine.name()
    found = []
    try:
        for each in (engine.C, engine.PYTHON):
            engine.use(each)
            found.append(work(*arguments))
    finally:
        engine.use(before)
    return found


def _records(source: random.Random) -> bytes:
    """Records of packets, some with impossible lengths, and often cut off."""
    parts = []
    for _ in range(source.randrange(12)):
        size = told = source.choice((0, 1, 60, 200))
        if source.random() < 0.1:
            told = source.choice(_LENGTHS)
        parts.append(struct.pack("<IIII", 1, 2, told, told) + source.randbytes(size))
    data = b"".join(parts)
    return data[: max(0, len(data) - source.randrange(40))] if source.random() < 0.5 else data
