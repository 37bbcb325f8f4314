"""How many frames are worth a copy of the process.

Owns the estimate: from the time that frames have taken, and the part of the input that is left. It
decides who shows a frame, and never what is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["CHECKED_FRAMES", "Pace"]

# After this many frames the estimate is made again.
CHECKED_FRAMES = 128

# How long a copy works on what it is given: long compared with the milliseconds that a copy costs,
# short enough for what is held back meanwhile. Units: seconds.
_STRETCH_S = 0.6
_STRETCH_MIN_S = 0.03


class Pace:
    """Measures how frames are shown.

    `part_read` is the part of the input that was read, from 0 to 1, and `first` the number of
    its first frame; `count` processes share the work.
    """

    def __init__(self, count: int, first: int, part_read: Callable[[], float]) -> None:
        self._count = count
        self._first = first
        self._part_read = part_read
        self._shown = 0
        self._seconds = 0.0
        self._started: tuple[int, float] | None = None

    def start(self, number: int) -> None:
        """Note that frames are shown from this number on."""
        self._started = number, time.process_time()

    def stop(self, number: int) -> None:
        """Note that frames were shown up to this number."""
        if self._started is not None:
            first, began = self._started
            self._shown += number - first
            self._seconds += time.process_time() - began
            self._started = None

    def stretch(self, number: int) -> int:
        """Return how many frames a copy should show from here on; 0 if it is not worth it."""
        if not self._shown:
            return 0
        each = max(self._seconds / self._shown, 1e-9)
        part = self._part_read()
        left = (number - self._first) * (1 - part) / part if part > 0 else 0.0
        # The last ones are shared so that all are done at the same time.
        seconds = min(_STRETCH_S, left * each * 0.9 / self._count)
        return int(seconds / each) if seconds >= _STRETCH_MIN_S else 0
