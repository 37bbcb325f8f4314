"""Lines of some frames of a capture, to be joined with those that other processes make.

Owns what a line needs from lines of others: the requests of responses, the columns of connections
and the names of topics. Headings come from the process that joins the lines.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from typing import Any

from kraftwire.capture.connections.share import NotShared
from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.quick import quick_bodies
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.exchange.pending import Pending, Waiting
from kraftwire.inspect.divided.rows import Lines
from kraftwire.inspect.lines.line import PLACES_MAX, LineWriter
from kraftwire.limits import RENDER_PENDING_COUNT_MAX
from kraftwire.printable import printable_lines

__all__ = ["LinesAhead", "News", "SharedLines"]

# Connection, API key and version.
_Place = tuple[str, int | None, int | None]


@dataclass(frozen=True, slots=True)
class News:
    """What lines depend on, apart from their frames, as far as it is new to another process.

    `topics` are names by id, `places` columns, as wide as they are, and `width` is that of the
    column of connections. All of it counts from `version` on; see `SharedLines.news`.
    """

    topics: dict[bytes, str]
    places: dict[_Place, str]
    width: int
    version: tuple[int, int]


@dataclass(slots=True)
class LinesAhead:
    """Lines that were made ahead of those before them, and what they depend on.

    `topics` are names of topics by id, as far as they were sought, and `width` is the width of the
    column of connections. `places` are columns that were new; `waiting` requests had no response.
    """

    lines: Lines
    topics: dict[bytes, str | None]
    width: int
    places: dict[_Place, str]
    waiting: list[Waiting[Any]]


class SharedLines(LineWriter):
    """Makes the lines of the frames that it is given, each with the key of its last frame."""

    def __init__(self, *, topics: TopicNames, is_coloured: bool) -> None:
        super().__init__(StringIO(), topics=topics, is_coloured=is_coloured)
        self._keys: array[int] = array("q")
        self._days: array[int] = array("q")
        self._head_width = 0
        # Ahead of others: the columns that others have, and the answers about names of topics.
        self._confirmed: dict[_Place, str] = {}
        self._answers: dict[bytes, str | None] = {}

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

    def take_lines(self) -> Lines:
        """Return the lines since the last time."""
        text = printable_lines(self._lines, is_painted=self._is_coloured)
        lines = Lines(text, self._keys, self._days)
        self._lines, self._keys, self._days = [], array("q"), array("q")
        return lines

    def finish_lines(self) -> Lines:
        """Return the lines of requests that never got an answer, with the keys of these."""
        for number, asked in self._pending.numbered_rest():
            self._pending.number = number
            self.unanswered(self._known(asked), True)
        return self.take_lines()

    @property
    def names(self) -> tuple[int, int]:
        """The number of changes to the names of topics, and the width of the connections'."""
        return self._topics.changes, self._width

    @property
    def width(self) -> int:
        """The width of the column of connections."""
        return self._width

    @property
    def head_width(self) -> int:
        """The width that this column had at the first line, or has if there is none yet."""
        return self._head_width or self._width

    def waiting(self, connection: str) -> int:
        """Return how many requests of a connection have no response yet."""
        return self._pending.count(connection)

    def check_share(self, count: int) -> None:
        """Give up if one process may have had to forget something. Raises: NotShared."""
        if self._pending.weight * count > RENDER_PENDING_COUNT_MAX:
            raise NotShared("many requests have no response")
        if len(self._places) * count > PLACES_MAX:
            raise NotShared("there are many connections")

    # -- ahead of others -----------------------------------------------------------------------

    @property
    def version(self) -> tuple[int, int]:
        """What has been learned so far, as a process knows it that is copied now."""
        return self._topics.changes, len(self._places)

    def news(self, version: tuple[int, int]) -> News:
        """Return what was learned since a version."""
        topics, count = version
        names = self._topics.by_id() if topics != self._topics.changes else {}
        places = dict(islice(self._places.items(), count, None))
        return News(names, places, self._width, self.version)

    def begin_ahead(self, news: News) -> None:
        """Begin with lines whose requests may be unknown."""
        if not self._confirmed:
            self._confirmed = self._places
        self._confirmed.update(news.places)
        self._places, self._width = dict(self._confirmed), news.width
        self._topics.update(news.topics)
        self._answers = self._topics.note_questions()
        self._pending = Pending(RENDER_PENDING_COUNT_MAX)
        self.take_lines()

    def take_ahead(self) -> LinesAhead:
        """Return the lines since then, and what they depend on."""
        new = dict(islice(self._places.items(), len(self._confirmed), None))
        waiting = self._pending.hand_out()
        return LinesAhead(self.take_lines(), self._answers, self._width, new, waiting)

    def misfit(self, ahead: LinesAhead) -> str:
        """Return what does not fit of lines that were made ahead; empty if everything does."""
        if not self._topics.would_answer(ahead.topics):
            return "there are new names of topics"
        known = self._places
        is_other = any(known.get(key, text) != text for key, text in ahead.places.items())
        return "a column is wider" if is_other or ahead.width != self._width else ""

    def adopt(self, ahead: LinesAhead) -> None:
        """Continue after lines that were made ahead."""
        for key, text in ahead.places.items():
            self._places.setdefault(key, text)
        self._pending.receive(ahead.waiting)

    # -- lines ---------------------------------------------------------------------------------

    def _line(self, time_ns: int, place: str, rest: tuple[str, str, str, str]) -> str:
        line = super()._line(time_ns, place, rest)
        self._keys.append(self._pending.number)
        self._days.append(self._day if time_ns >= 0 else -1)
        return line

    def _begin_day(self, day: int) -> None:
        """Write no heading."""
        if self._day < 0:
            self._head_width = self._width
        self._day = day

    def _put(self, line: str) -> None:
        self._lines.append(line)
