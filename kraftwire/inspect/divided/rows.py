"""The order of the lines of a capture that several processes read, and the headings among them.

The names of the columns are as wide as the columns are at the first line.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import attrgetter
from typing import IO

from kraftwire.capture.connections.share import NotShared
from kraftwire.decode.text import BOLD, paint
from kraftwire.inspect.lines.line import date_heading, head_text

__all__ = ["KEY_BITS", "Keys", "Lines", "RowWriter"]

# A key numbers frames in their order: the mark of the frame (see `pairing.share`), and in the
# lowest bits its number among those with the same mark.
KEY_BITS = 13

_KEYS = attrgetter("keys")


@dataclass(slots=True)
class Lines:
    """Some lines in one text, with the keys of their frames and their days since the epoch."""

    text: str = ""
    keys: array[int] = field(default_factory=lambda: array("q"))
    days: array[int] = field(default_factory=lambda: array("q"))


class Keys:
    """Makes the keys of frames from their marks."""

    def __init__(self) -> None:
        self._last = -1

    def of(self, marks: Iterable[int]) -> list[int]:
        """Return the keys of the next frames. Raises: NotShared."""
        keys = []
        for mark in marks:
            key = mark << KEY_BITS
            if key <= self._last:
                key = self._last + 1
                if key >> KEY_BITS != mark:
                    raise NotShared("the order of frames is not that of the capture")
            keys.append(key)
            self._last = key
        return keys


class RowWriter:
    """Writes lines in the order of their keys; `written` counts the characters so far."""

    def __init__(self, out: IO[str], *, is_coloured: bool) -> None:
        self.written = 0
        self._out = out
        self._is_coloured = is_coloured
        self._day = -1

    def write(self, parts: Sequence[Lines], width: int) -> None:
        """Write the lines of some readers, whose frames are complete at different places.

        `width` is that of the column of connections at the first line of all. Raises: NotShared.
        """
        most, *others = sorted(parts, key=lambda part: len(part.keys), reverse=True)
        if not most.keys:
            return
        lines, days = most.text.split("\n")[:-1], list(most.days)
        for part in filter(_KEYS, others):
            lines, days = _merged(part, lines, days, most.keys)
        if set(days) != {self._day}:
            lines = [*chain.from_iterable(map(self._with_headings, days, lines, repeat(width)))]
        lines.append("")
        text = "\n".join(lines)
        self.written += len(text)
        self._out.write(text)
        self._out.flush()

    def _with_headings(self, day: int, line: str, width: int) -> Iterable[str]:
        if day < 0 or day == self._day:
            return (line,)
        is_first, self._day = self._day < 0, day
        above = (self._head(width),) if is_first else ()
        return (*above, date_heading(day, is_coloured=self._is_coloured), line)

    def _head(self, width: int) -> str:
        return paint(head_text(width), BOLD, is_wanted=self._is_coloured)


def _merged(
    part: Lines, lines: Sequence[str], days: Sequence[int], keys: Sequence[int]
) -> tuple[list[str], list[int]]:
    """Return lines, and their days, with those of a part among them. Raises: NotShared."""
    all_lines: list[str] = []
    all_days: list[int] = []
    done = 0
    for key, day, line in zip(part.keys, part.days, part.text.split("\n"), strict=False):
        at = bisect_right(keys, key, done)
        marks = {each >> KEY_BITS for each in (*keys[at - 1 : at], *keys[at : at + 1])}
        if key >> KEY_BITS in marks:
            raise NotShared("frames of several readers are complete at once")
        all_lines += (*lines[done:at], line)
        all_days += (*days[done:at], day)
        done = at
    return [*all_lines, *lines[done:]], [*all_days, *days[done:]]
