"""Lines of some frames of a capture, to be joined with those that other processes make.

Owns what a line needs from lines of others: nothing but the width of a column and the names of
topics, which come as events. Headings come from the process that joins the lines.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from io import StringIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.quick import quick_bodies
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.divided.reports import Lines
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.pairing.share import NotShared
from kraftwire.decode.render.line import PLACES_MAX, LineWriter, day_of
from kraftwire.limits import RENDER_PENDING_COUNT_MAX
from kraftwire.printable import printable_lines

__all__ = ["SharedLines"]


class SharedLines(LineWriter):
    """Makes the lines of the frames that it is given, each with the key of its last frame."""

    def __init__(self, *, topics: TopicNames, is_coloured: bool) -> None:
        super().__init__(StringIO(), topics=topics, is_coloured=is_coloured)
        self._keys: array[int] = array("q")
        self._days: array[int] = array("q")

    def show(
        self,
        frames: Sequence[Frame],
        keys: Sequence[int],
        decode: Callable[[Frame], DecodedFrame],
    ) -> Iterator[DecodedFrame]:
        """Take frames in the order of their keys; yields those that had to be decoded."""
        for frame, body, key in zip(frames, quick_bodies(frames), keys, strict=True):
            self._pending.number = key
            if body is not None:
                self.take(frame, body, None)
            else:
                decoded = decode(frame)
                self.frame(decoded)
                yield decoded
            while len(self._keys) < len(self._lines):
                self._keys.append(key)

    def take_lines(self) -> Lines:
        """Return the lines since the last time."""
        text = printable_lines(self._lines, is_painted=self._is_coloured)
        lines = Lines(text, self._keys, self._days)
        self._lines, self._keys, self._days = [], array("q"), array("q")
        return lines

    def finish_lines(self) -> Lines:
        """Return the lines of requests that never got an answer, with the keys of these."""
        for number, asked in self._pending.numbered_rest():
            self.unanswered(self._known(asked), True)
            self._keys.append(number)
        return self.take_lines()

    @property
    def width(self) -> int:
        """The width of the column of connections."""
        return self._width

    def widen(self, width: int) -> None:
        """Learn of a long name that another process shows."""
        self._width = max(self._width, width)

    def check_share(self, count: int) -> None:
        """Give up if one process may have had to forget something. Raises: NotShared."""
        if self._pending.weight * count > RENDER_PENDING_COUNT_MAX:
            raise NotShared("many requests have no response")
        if len(self._places) * count > PLACES_MAX:
            raise NotShared("there are many connections")

    def _line(self, time_ns: int, place: str, rest: tuple[str, str, str, str]) -> str:
        self._days.append(day_of(time_ns))
        return super()._line(time_ns, place, rest)

    def _begin_day(self, day: int) -> None:
        """Write no heading."""
        self._day = day

    def _put(self, line: str) -> None:
        self._lines.append(line)
