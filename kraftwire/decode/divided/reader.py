"""A process that reads a share of a capture's connections, and makes lines of their frames.

Owns the blocks: after each, the reader says what others must know to show theirs. It reads some
more blocks before it needs to hear what they have found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from kraftwire.decode.body.clues import needs_learning
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.divided.reports import (
    BLOCK_BYTES,
    BLOCKS_AHEAD,
    KEY_BITS,
    Block,
    End,
    Event,
    Line,
)
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.pairing.conversations import Capture
from kraftwire.decode.pairing.share import NotShared, Share
from kraftwire.decode.render.shared_line import SharedLines

__all__ = ["Reader"]

_SAME_MARK_MAX = 1 << KEY_BITS
_LAST = 1 << 62


class Reader:
    """Reads a capture for one of several processes.

    `decode` decodes a frame and learns from it. By `line` the reader reports to the process that
    joins the lines, and hears the events of other readers. Raises: NotShared.
    """

    def __init__(
        self,
        path: str,
        share: Share,
        sink: SharedLines,
        decode: Callable[[Frame], DecodedFrame],
        line: Line,
    ) -> None:
        self._share = share
        self._capture = Capture(path, share=share)
        self._sink = sink
        self._decode = decode
        self._tell = line.tell
        self._hear = line.hear
        self._findings: Counter[str] = Counter()
        self._frames: list[Frame] = []
        self._keys: list[int] = []
        self._wide: set[str] = set()
        # The blocks that were announced and are not shown yet.
        self._waiting: deque[tuple[list[Frame], list[int]]] = deque()

    def read(self) -> End:
        """Read everything, and report it; returns the last report."""
        border = BLOCK_BYTES
        for frames in self._capture.lists():
            self._add(frames)
            while self._capture.settled >= border:
                self._close_block(border)
                border += BLOCK_BYTES
        while self._capture.health.bytes.file >= border:
            self._close_block(border)
            border += BLOCK_BYTES
        self._close_block(_LAST)
        while self._waiting:
            self._show_block()
        return End(self._sink.finish_lines(), self._findings, self._capture.health)

    def _add(self, frames: Sequence[Frame]) -> None:
        keys, last = self._keys, self._keys[-1] if self._keys else -1
        for mark in self._share.take():
            key = mark << KEY_BITS
            if key <= last:
                key = last + 1
                if key >> KEY_BITS != mark:
                    raise NotShared(f"more than {_SAME_MARK_MAX} frames are complete at once")
            keys.append(key)
            last = key
        self._frames += frames

    def _close_block(self, border: int) -> None:
        """End the block whose frames are complete at a position."""
        cut = bisect_right(self._keys, (border << KEY_BITS) + _SAME_MARK_MAX - 1)
        block = self._frames[:cut], self._keys[:cut]
        del self._frames[:cut], self._keys[:cut]
        self._tell(Block(cut, list(self._events(*block)), border == _LAST))
        self._waiting.append(block)
        if len(self._waiting) > BLOCKS_AHEAD:
            self._show_block()

    def _events(self, frames: Sequence[Frame], keys: Sequence[int]) -> Iterable[Event]:
        width = self._sink.width
        for frame, key in zip(frames, keys, strict=True):
            name = frame.connection
            if len(name) > width and name not in self._wide:
                self._wide.add(name)
                yield key, len(name)
            if needs_learning(frame.api_key):
                yield key, frame

    def _show_block(self) -> None:
        """Show a block, and learn what other readers have found in it in its place."""
        frames, keys = self._waiting.popleft()
        at = 0
        for key, found in self._hear():
            stop = bisect_right(keys, key, at)
            self._show_frames(frames[at:stop], keys[at:stop])
            at = stop
            if isinstance(found, int):
                self._sink.widen(found)
            else:
                self._decode(found)
        self._show_frames(frames[at:], keys[at:])
        self._sink.check_share(self._share.count)
        self._tell(self._sink.take_lines())

    def _show_frames(self, frames: Sequence[Frame], keys: Sequence[int]) -> None:
        for decoded in self._sink.show(frames, keys, self._decode):
            for finding in decoded.findings:
                self._findings[finding.id] += 1
