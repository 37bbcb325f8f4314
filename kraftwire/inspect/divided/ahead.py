"""A copy of the process that reads a stretch ahead, and makes lines of it.

Owns what it leaves to the process that it is a copy of: frames that depend on others, or reveal
something about them, which are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

from kraftwire.capture.capture import Capture
from kraftwire.capture.connections.adoption import Passage, pack, passage
from kraftwire.capture.connections.ahead import Ahead
from kraftwire.capture.connections.frame_queue import Outbox
from kraftwire.capture.connections.open_connections import OpenConnections
from kraftwire.capture.connections.share import NotShared
from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.stretches import Stretch, Stretches
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.response_context import needs_learning
from kraftwire.inspect.divided.rows import Keys
from kraftwire.inspect.shared_line import LinesAhead, News, SharedLines

__all__ = ["Found", "Showing", "read_ahead"]

_LOST = "responses-lost"


@dataclass(frozen=True, slots=True)
class Showing:
    """What makes lines: `decode` decodes a frame and learns from it."""

    sink: SharedLines
    decode: Callable[[Frame], DecodedFrame]


@dataclass(slots=True)
class Found:
    """What was found in a stretch; `told` are the frames that were not shown, with their keys.

    Units: `seconds` of CPU time.
    """

    passage: Passage
    lines: LinesAhead
    told: list[tuple[int, Frame]]
    findings: Counter[str]
    shown: int
    seconds: float


def read_ahead(
    file: tuple[str, int], count: int, showing: Showing, stretch: Stretch, news: News
) -> bytes:
    """Read a stretch in a copy of the process that has read those before, one of `count`.

    `file` is the name of the capture, and its descriptor. Returns what was found, packed. Raises:
    NotShared; StorageError.
    """
    outbox = Outbox(Health())
    return pack(_Reader(file, count, showing, stretch, outbox).read(news), outbox)


class _Reader:
    def __init__(
        self,
        file: tuple[str, int],
        count: int,
        showing: Showing,
        stretch: Stretch,
        outbox: Outbox,
    ) -> None:
        name, descriptor = file
        self._end = stretch[1]
        self._size = stretch[1] - stretch[0]
        source, after = Stretches(descriptor, stretch, lambda: None), OpenConnections(outbox)
        self._ahead = Ahead(count, outbox, after.open, self._size)
        self._capture = Capture(source, name=name, after=after, is_last=False, share=self._ahead)
        self._showing = showing
        self._findings: Counter[str] = Counter()
        self._told: list[tuple[int, Frame]] = []
        self._shown = 0

    def read(self, news: News) -> Found:
        """Read and show everything."""
        sink, keys, began = self._showing.sink, Keys(), process_time()
        sink.begin_ahead(news)
        for frames in self._capture.lists():
            self._take(frames, keys.of(self._ahead.take()))
        if self._capture.place != self._end or self._capture.health.problem:
            raise NotShared("the stretch does not end where a packet ends")
        sink.check_share(self._ahead.count)
        lines = sink.take_ahead()
        self._capture.health.bytes.file = 0
        found = passage(self._capture, self._ahead, self._size)
        seconds = process_time() - began
        return Found(found, lines, self._told, self._findings, self._shown, seconds)

    def _take(self, frames: Sequence[Frame], keys: Sequence[int]) -> None:
        if not any(map(_is_told, frames)):
            self._show(frames, keys)
            return
        for frame, key in zip(frames, keys, strict=True):
            if _is_told(frame):
                self._tell(frame, key)
            else:
                self._show((frame,), (key,))

    def _tell(self, frame: Frame, key: int) -> None:
        self._ensure_alone(frame)
        if len(frame.connection) > self._showing.sink.width:
            raise NotShared("a column gets wider")
        self._showing.decode(frame)
        self._told.append((key, frame))

    def _show(self, frames: Sequence[Frame], keys: Sequence[int]) -> None:
        self._shown += len(frames)
        for decoded in self._showing.sink.show(frames, keys, self._showing.decode):
            self._ensure_alone(decoded.frame)
            for finding in decoded.findings:
                self._findings[finding.id] += 1

    def _ensure_alone(self, frame: Frame) -> None:
        """Give up where requests that others may know stay without a response."""
        if any(finding[0] == _LOST for finding in frame.findings):
            raise NotShared("responses are lost")


def _is_told(frame: Frame) -> bool:
    return frame.api_key is None or needs_learning(frame.api_key)

