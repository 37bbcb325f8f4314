"""Arrays of numbers about packets, and ranges of bytes joined."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kraftwire import engine

Ints: TypeAlias = "npt.NDArray[np.int64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"


def join_ranges(data: bytes, starts: Ints, sizes: Ints) -> bytes:
    """Return ranges of the data, all of which exist, one after the other."""
    if engine.core is not None:
        joined: bytes = engine.core.join_ranges(
            data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes)
        )
        return joined
    stops = starts + sizes
    return b"".join([data[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])
