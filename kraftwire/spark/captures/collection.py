"""Python's garbage collector, made to look less often while small objects come and go."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["rare_collection"]

# Rows and frames are freed by counting; there is hardly a circle among them.
_THRESHOLDS = (200_000, 20, 100)


@contextmanager
def rare_collection() -> Iterator[None]:
    """Look for circles of garbage rarely within this context."""
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
