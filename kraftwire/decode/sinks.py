"""Sinks: what a run writes frames and lines to, and the optional abilities of their types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

from kraftwire.capture.connections.frame_queue import Ending
from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.report import FileLine

__all__ = [
    "CapturesOnly",
    "HearsEndings",
    "HearsStart",
    "Relays",
    "Sink",
    "TakesInOrder",
    "TakesQuickly",
]


class Sink(Protocol):
    """Shows frames and lines: one kind of output.

    Order: `frame` and `file_line` as they come, then `finish` once, also after a run that was
    interrupted.
    A sink that is `exchange.paired.Paired` gets a request, though it does not pass the
    filter, if its response does, and the other way round. One that `TakesQuickly` is asked first
    whether it takes a frame that is not decoded yet, where all frames are wanted.
    """

    def frame(self, frame: DecodedFrame, /) -> None:
        """Show a frame that passed the filter."""

    def file_line(self, line: FileLine, /) -> None:
        """Show a batch, an index entry or a state file."""

    def finish(self) -> None:
        """Show what is left, such as statistics, and flush."""


class CapturesOnly(ABC):
    """A sink that uses frames only; `option` is how it is asked for."""

    option: ClassVar[str]


class HearsEndings(ABC):
    """A sink that must know when connections end."""

    @abstractmethod
    def ending(self, ending: Ending) -> None:
        """Note that a connection ends."""


class TakesInOrder(ABC):
    """A sink for which it matters when a frame comes: no request may wait for its response."""

    @abstractmethod
    def pass_by(self, decoded: DecodedFrame, /) -> None:
        """Learn of a frame that is not wanted, in its place among those that are.

        Its time is one that is wanted.
        """


class TakesQuickly(ABC):
    """A sink that has a fast path for ordinary frames."""

    @abstractmethod
    def quickly(self, frames: Sequence[Frame], number: int = 0, /) -> Iterator[bool]:
        """Show frames that are not decoded yet, each in its turn; yields whether that was possible.

        `number` is that of the first of them in the run. Frames for which it was not possible have
        to come again through `frame`.
        """


class Relays(ABC):
    """A sink that can leave frames to another process, which shows them in its place."""

    @abstractmethod
    def pass_over(self, frame: Frame, number: int, decoded: DecodedFrame | None, /) -> None:
        """Register a frame that another process shows, so that what follows is shown as if
        this process had shown it; `decoded` is set for frames that say something about others.
        """

    @abstractmethod
    def hand_over(self) -> None:
        """Write all texts that are held back. Requests go on waiting for their responses."""


class HearsStart(ABC):
    """A sink that shows times since the start."""

    @abstractmethod
    def begin(self, time_ns: int) -> None:
        """Learn the time of the run's first frame, shown or not."""
