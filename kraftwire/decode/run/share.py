"""A share of a run: one of several processes that read the same frames, and show some of them each.

Owns which frames are whose, and the order in which what they write belongs together. All of them
cut packets into frames and learn from those that tell something, so each frame is decoded with the
same knowledge as in one process, and a long connection is no obstacle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from kraftwire.decode.framing.frames import Frame

__all__ = ["Part", "Parts", "Share", "Turned"]

# What was written: the count of frames by then, its place among all that this frame gave rise to,
# the share, and the text or bytes.
Part = tuple[float, int, int, Any]
Parts = list[Part]

# Parts are sent together up to so many of them, and up to so many characters.
_PARTS_MAX = 1000
_TEXT_MAX = 256 * 1024

# Of numbers that follow each other this makes numbers that do not.
_MIX = 2654435761
_MIX_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Share:
    """One of `count` shares of the frames.

    Shape: a response is of the same share as its request.
    """

    index: int
    count: int

    def owns(self, frame: Frame) -> bool:
        """Whether a frame is of this share."""
        request = frame.request
        number = frame.correlation_id if request is None else request.correlation_id
        mixed = (number or 0) * _MIX & _MIX_BITS
        return (mixed >> 16) % self.count == self.index

    @property
    def is_first(self) -> bool:
        """Whether it shows what is not of frames."""
        return self.index == 0


class _HasTurn(Protocol):
    @property
    def turn(self) -> int: ...


class Turned:
    """A stream whose pieces keep their place in the whole; sends them in lists.

    Order: `at` is set for each frame. Shape: `turns` knows the place of a piece among those of a
    frame, if there may be several.
    """

    def __init__(self, index: int, send: Callable[[Parts], object], *, is_terminal: bool) -> None:
        self.at: float = 0
        self.turns: _HasTurn | None = None
        self._index = index
        self._send = send
        self._is_terminal = is_terminal
        self._parts: Parts = []
        self._size = 0

    def write(self, data: Any) -> int:
        """Keep a piece."""
        turn = 0 if self.turns is None else self.turns.turn
        self._parts.append((self.at, turn, self._index, data))
        self._size += len(data)
        if self._size > _TEXT_MAX or len(self._parts) >= _PARTS_MAX:
            self.send()
        return len(data)

    def flush(self) -> None:
        """Do nothing: pieces go when there are enough of them."""

    def isatty(self) -> bool:
        """Whether the pieces end on a terminal."""
        return self._is_terminal

    def send(self) -> None:
        """Send what is kept."""
        parts, self._parts = self._parts, []
        self._size = 0
        if parts:
            self._send(parts)


class Headings:
    """Leaves out headings that another share has written already.

    Shape: a heading is a line that begins with a number sign, perhaps painted.
    """

    def __init__(self) -> None:
        self._is_headed = False
        self._day = ""

    def without(self, texts: Iterable[str]) -> Iterable[str]:
        """The texts but for the column names after the first, and for a day that goes on."""
        for text in texts:
            if text.startswith(("#", "\x1b[1m#", "\x1b[2m#")):
                if "# time " in text:
                    if self._is_headed:
                        continue
                    self._is_headed = True
                elif text == self._day:
                    continue
                else:
                    self._day = text
            yield text
