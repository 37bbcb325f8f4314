"""The base class of all outputs of a run: what takes frames and lines of files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import ClassVar

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileFinding, FileLine


class Enough(Exception):
    """Ends a run whose output has shown as much as was wanted."""


class Sink:
    """Shows frames and lines of files: one kind of output. A method that is not overridden does
    nothing.

    Order: `begin` before the first frame; `frame`, `file_line` and the others as they come; then
    `finish` once, also after a run that was interrupted.
    """

    # Whether a request passes the filters if its response does, and the reverse.
    takes_exchanges: ClassVar[bool] = False
    # Whether ordinary frames may come with their bodies alone: see `decode.body.ordinary`.
    takes_bodies: ClassVar[bool] = False
    # Whether filters must keep the order of frames: no request waits for its response.
    needs_order: ClassVar[bool] = False
    # Whether log directories have something to show.
    takes_files: ClassVar[bool] = True

    # How many exchanges, frames, lines of files or records, whatever this output shows one by one,
    # are still wanted. At 0 the run ends.
    left: float = math.inf

    def begin(self, time_ns: int, /) -> None:
        """Learn the time of the run's first frame, shown or not."""

    def frame(self, frame: Frame, /) -> None:
        """Show a frame that passed the filters."""

    def take_ordinary(self, frames: Sequence[RawFrame], number: int = 0, /) -> Iterator[bool]:
        """Show ordinary frames before they are decoded; yields for each whether it was shown.

        `number` is that of the first of them in the run. Frames that were not shown have to come
        again through `frame`.
        """
        del frames, number
        return repeat(False)

    def unwanted(self, frame: Frame, /) -> None:
        """Learn of a frame of the wanted times that did not pass the filters; see `needs_order`."""

    def ending(self, ending: Ending, /) -> None:
        """Learn that a connection ends."""

    def begin_capture(self, health: Health, /) -> None:
        """Learn that a capture is read, whose totals are complete when the run ends."""

    def begin_file(self, file: str, kind: FileKind, /) -> None:
        """Learn that a file of a log directory is read, which may have no lines."""

    def file_line(self, line: FileLine, /) -> None:
        """Show a batch, an index entry or a state file."""

    def file_finding(self, finding: FileFinding, /) -> None:
        """Learn what is wrong with a file. Order: among its lines."""

    def refused_directory(self, folder: str, reason: str, /) -> None:
        """Learn why a node would not start on a log directory. Order: after its files."""

    def finish(self) -> None:
        """Show the rest, such as statistics, and flush."""
