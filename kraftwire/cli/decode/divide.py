"""`kraftwire decode --jobs` for lines: processes that each read some connections of a capture.

Owns when that is possible, and what happens where it turns out not to be: one process then goes on
where the joined lines end, see `Rest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import IO

from kraftwire import engine
from kraftwire.cli.decode.output import Output, is_coloured, standard_output
from kraftwire.decode.body.frame import DecodedFrame, FrameDecoder
from kraftwire.decode.body.memory import Memory
from kraftwire.decode.capture.pcap import is_plain_capture
from kraftwire.decode.divided.joiner import Joiner
from kraftwire.decode.divided.processes import start_readers
from kraftwire.decode.divided.reader import Reader
from kraftwire.decode.divided.reports import End, Line
from kraftwire.decode.divided.weights import owners, samples_of
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.pairing.conversations import Capture
from kraftwire.decode.pairing.share import NotShared, Share
from kraftwire.decode.render.shared_line import SharedLines
from kraftwire.decode.run.options import Options
from kraftwire.decode.run.run import Run
from kraftwire.errors import StorageError

__all__ = ["Divided", "Rest", "can_divide"]

# They take some milliseconds.
_FRAMES_TRIED = 200


def can_divide(inputs: tuple[str, ...], output: Output) -> bool:
    """Whether the input is one capture that is read at no cost, and the output is lines.

    Only with the engine: in Python it takes too long to pass over packets of others.
    """
    is_lines = engine.core is not None and output is Output.LINE
    return is_lines and len(inputs) == 1 and is_plain_capture(inputs[0])


@dataclass(slots=True)
class Divided:
    """A run of lines over one capture; `written` counts characters, also if it was given up."""

    count: int
    path: str
    wanted: Options
    written: int = 0

    def do(self, run: Run, watching: AbstractContextManager[object]) -> bool:
        """Write all lines, and count for the run; False if one process has to read the capture.

        Order: `watching` is entered once all processes are started, so it may start threads.
        """
        out = standard_output(Output.LINE)
        out.flush()
        try:
            samples = list(samples_of(self.path))
            self._warm_up(samples[:: len(samples) // 2 or 1])
            work = partial(self._read, owners(samples, self.count))
            readers = start_readers(self.count, work)
        except (OSError, StorageError):
            return False
        joiner = Joiner(readers, out, is_coloured=is_coloured())
        try:
            with watching:
                joiner.join(run.totals, self.path)
        except (NotShared, StorageError):
            return False
        finally:
            self.written = joiner.written
            for each in readers:
                each.stop()
        return True

    def _read(self, owned: Mapping[bytes, int], number: int, line: Line) -> End:
        """Act as one of the readers; returns its last report."""
        share = Share(number, self.count, owned)
        return Reader(self.path, share, *self._sink(), line).read()

    def _sink(self) -> tuple[SharedLines, Callable[[Frame], DecodedFrame]]:
        """Return what shows frames, and what decodes them for it."""
        memory = Memory()
        settings = self.wanted.settings(memory)
        decoder = FrameDecoder(settings, memory)
        sink = SharedLines(topics=settings.topics, is_coloured=is_coloured())
        return sink, lambda frame: decoder.decode(frame, 0)

    def _warm_up(self, samples: Sequence[bytes]) -> None:
        """Load the modules for usual frames, and make their functions, once for all readers."""
        for sample in samples:
            sink, decode = self._sink()
            frames = list(islice(Capture([sample]), _FRAMES_TRIED))
            for decoded in sink.show(frames, range(len(frames)), decode):
                _ = decoded.findings


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
