"""Settings of Python's garbage collector for programs that decode a lot.

The collector belongs to the whole process, so nothing in this library changes it by itself. Decoded
messages and records have no cycles and are freed by reference counts; but each of their objects
brings the next collection nearer, and a full one walks over everything that the program holds. In
pure Python a message of tens of thousands of objects can take ten times as long by that. The engine
in C hides the objects of a large message until it is complete.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (200_000, 20, 100)


def collect_rarely(young: int | None = None) -> None:
    """Raise the thresholds of the process for the rest of its life: for programs with one thread.

    `young` is the number of new objects that starts a collection, 200,000 by default.
    """
    usual, *older = _THRESHOLDS
    gc.set_threshold(young or usual, *older)


@contextmanager
def rare_collection() -> Iterator[None]:
    """Raise the thresholds of the process within a context, and restore them after it."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)
