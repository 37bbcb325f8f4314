"""`kraftwire decode --jobs` for lines: processes that each read some stretches of a capture.

Owns when that is possible, and what happens where it turns out not to be: one process then reads
everything, and goes on where the text ends, see `Rest`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, NoReturn

from kraftwire.capture.connections.share import NotShared
from kraftwire.capture.packets.stretches import can_be_cut
from kraftwire.cli.decode.jobs import in_copy
from kraftwire.cli.decode.output import Output, is_coloured, standard_output
from kraftwire.decode.body.capture_context import Memory
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.options import Options
from kraftwire.errors import StorageError
from kraftwire.inspect.divided.ahead import Showing
from kraftwire.inspect.divided.reader import Reader
from kraftwire.inspect.divided.rows import RowWriter
from kraftwire.inspect.run.forked import Original
from kraftwire.inspect.run.run import Run, Totals
from kraftwire.inspect.shared_line import SharedLines

__all__ = ["Divided", "Rest", "can_divide"]


def can_divide(inputs: tuple[str, ...], output: Output) -> bool:
    """Whether the input is one capture that can be cut into stretches, and the output is lines."""
    return output is Output.LINE and len(inputs) == 1 and can_be_cut(inputs[0])


@dataclass(slots=True)
class Divided:
    """A run of lines over one capture; `written` counts characters, also if it was given up."""

    count: int
    path: str
    wanted: Options
    written: int = 0

    def do(self, run: Run, watching: AbstractContextManager[object]) -> bool:
        """Write all lines, and count for the run; False if one process has to read the capture.

        Order: `watching` is entered once this process makes no more copies, so it may start
        threads.
        """
        totals, self.written = in_copy(self._read, run, watching)
        if totals is not None:
            run.totals = totals
        return totals is not None

    def _read(self, original: Original) -> NoReturn:
        """Act as the process that writes. Does not return."""
        writer = RowWriter(standard_output(Output.LINE), is_coloured=is_coloured())

        def work() -> tuple[Totals | None, int]:
            totals = Totals()
            try:
                showing = self._showing()
                Reader(self.path, self.count, showing, writer, original.tell).read(totals)
            except (NotShared, StorageError):
                return None, writer.written
            return totals, writer.written

        original.leave(work)

    def _showing(self) -> Showing:
        """Return what shows frames, and what decodes them for it."""
        memory = Memory()
        settings = self.wanted.settings(memory)
        decoder = FrameDecoder(settings, memory)
        sink = SharedLines(topics=settings.topics, is_coloured=is_coloured())
        return Showing(sink, lambda frame: decoder.decode(frame, 0))


class Rest:
    """A stream for text of which the beginning is on the other stream already.

    `written` counts the characters that are dropped.
    """

    def __init__(self, stream: IO[str], written: int) -> None:
        self._stream = stream
        self._left = written

    def write(self, text: str) -> int:
        """Write what is new in a text."""
        if self._left:
            dropped = min(self._left, len(text))
            self._left -= dropped
            self._stream.write(text[dropped:])
        else:
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the other stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self._stream.isatty()
