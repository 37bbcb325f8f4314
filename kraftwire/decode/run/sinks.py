"""What a run shows frames and lines with: a sink, and what its type says it can do besides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.pairing.outbox import Ending

__all__ = ["HearsEndings", "HearsStart", "Sink"]


class Sink(Protocol):
    """Shows frames and lines: one kind of output.

    Order: `frame` and `file_line` as they come, then `finish` once, also after a run that was
    interrupted.
    Shape: a sink that is `exchange.paired.Paired` gets a request, though it does not pass the
    filter, if its response does, and the other way round. One that is `QuickPaired` is asked first
    whether it takes a frame that nobody has decoded, where all frames are wanted.
    """

    def frame(self, frame: DecodedFrame, /) -> None:
        """Show a frame that passed the filter."""

    def file_line(self, line: FileLine, /) -> None:
        """Show a batch, an index entry or a state file."""

    def finish(self) -> None:
        """Show what is left, such as statistics, and flush."""


class HearsEndings(ABC):
    """A sink that wants to know of connections that end."""

    @abstractmethod
    def ending(self, ending: Ending) -> None:
        """Take note of a connection that ends."""


class HearsStart(ABC):
    """A sink that shows times since the start."""

    @abstractmethod
    def begin(self, time_ns: int) -> None:
        """Learn the time of the run's first frame, shown or not."""
