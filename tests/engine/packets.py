"""Random bytes of captures through both engines. Needs numpy, which is part of Spark's extra."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from kraftwire import engine
from tests.engine.captures import damaged, same_frames

# A capture takes as long as many cases of ranges.
_CAPTURES_SHARE = 1 / 20


def search_packets(source: random.Random) -> Counter[str]:
    """Compare the engines on ranges of bytes, and on the frames of a damaged capture.

    Returns counts as `search_messages` does. Raises: AssertionError at the first difference.
    """
    import numpy as np

    from kraftwire.spark.captures.connection_bytes import join_ranges

    data = source.randbytes(source.choice((0, 1, 60, 2000)))
    starts = [source.randint(0, len(data)) for _ in range(source.randrange(20))]
    sizes = [source.randint(0, len(data) - start) for start in starts]
    ranges = np.array(starts, np.int64), np.array(sizes, np.int64)
    joined = _both(join_ranges, data, *ranges)
    assert joined[0] == joined[1], f"{data.hex()}: {starts} {sizes}"
    parts = [data[start:][:size] for start, size in zip(starts, sizes, strict=True)]
    assert joined[0] == b"".join(parts)
    if source.random() < _CAPTURES_SHARE:
        pieces = damaged(source)
        cut = source.randrange(len(pieces))
        same_frames(pieces[:cut], pieces[cut:])
    return Counter({"captures": 1, "ranges": len(starts)})


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
