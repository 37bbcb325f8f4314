"""Which stretches of a capture the reader reads itself, and which copies of the process."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass

from kraftwire.capture.packets.stretches import Stretch, cut_after

__all__ = ["Balance", "Plan"]

# The first stretch is read before there is any copy: it has the names of topics, and shows which
# functions frames need.
FIRST_BYTES_MAX = 2 * 1024 * 1024
FIRST_PART = 64
# A line is written after so much at the latest. A stretch is long compared with the milliseconds
# that a copy costs.
STRETCH_BYTES_MAX = 32 * 1024 * 1024
STRETCH_BYTES_MIN = 1024 * 1024
STRETCHES_MAX = 32
# The part of what is left that a round takes: all processes should be done at the same time.
_ROUND_PART = 2
_OWN_MIN, _OWN_MAX = 0.25, 1.5


@dataclass(slots=True)
class Balance:
    """How long things have taken, and thus how a round is divided so that all are done at once.

    `own` are seconds and bytes of stretches that the reader has read, `copied` those of copies and
    `taken` the seconds for taking over these.
    """

    own: tuple[float, int] = (0.0, 0)
    copied: tuple[float, int] = (0.0, 0)
    taken: float = 0.0

    def note_own(self, seconds: float, size: int) -> None:
        """Note what a stretch has taken that was read here."""
        self.own = self.own[0] + seconds, self.own[1] + size

    def note_copied(self, seconds: float, size: int, taken: float) -> None:
        """Note what a stretch has taken that a copy has read."""
        self.copied = self.copied[0] + seconds, self.copied[1] + size
        self.taken += taken

    def own_part(self, count: int) -> float:
        """Return the size of an own stretch, if that of each of `count` copies is 1."""
        (own, own_size), (copied, copied_size) = self.own, self.copied
        if not own or not copied_size:
            return 1.0
        part = (copied - self.taken * count) / copied_size * own_size / own
        return min(max(part, _OWN_MIN), _OWN_MAX)


class Plan:
    """Cuts a file into stretches for `count` processes. Raises: OSError."""

    def __init__(self, file: int, count: int) -> None:
        self._file = file
        self._count = count
        self._size = os.fstat(file).st_size
        self._at = cut_after(file, min(FIRST_BYTES_MAX, self._size // FIRST_PART))
        self._step_min = max(STRETCH_BYTES_MIN, self._size // STRETCHES_MAX)
        # Nobody has anything to take over at first, so the first ones are short as well.
        self._step_max = self._step_min

    @property
    def first(self) -> Stretch:
        """The first stretch."""
        return 0, self._at

    def next_round(self, own_part: float) -> deque[Stretch]:
        """Return the next stretches, one for each process; fewer at the end of the file.

        The first is the reader's own, whose size is a part of that of the others.
        """
        stretches: deque[Stretch] = deque()
        left = (self._size - self._at) // (self._count * _ROUND_PART)
        step = max(self._step_min, min(left, self._step_max))
        self._step_max = min(2 * self._step_max, STRETCH_BYTES_MAX)
        while self._at < self._size and len(stretches) < self._count:
            size = step if stretches else int(step * own_part)
            stop = cut_after(self._file, self._at + size)
            stretches.append((self._at, stop))
            self._at = stop
        return stretches

    def rest(self, position: int) -> Stretch:
        """Return all that is left from a position on, which then is planned."""
        self._at = self._size
        return position, self._size
