"""The reader of a capture whose stretches are read in turn by itself and by copies ahead of it.

Owns who reads what. A stretch of a copy is taken over if all that the copy assumed turns out to be
right; otherwise the reader reads it itself.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from time import process_time

from kraftwire.capture.capture import Capture
from kraftwire.capture.connections.adoption import Adoption, unpack
from kraftwire.capture.connections.share import NotShared, Share
from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.packets.stretches import Stretch, Stretches
from kraftwire.inspect.divided.ahead import Found, Showing, read_ahead
from kraftwire.inspect.divided.helpers import QUEUE_MAX, Helper, start
from kraftwire.inspect.divided.plan import Balance, Plan
from kraftwire.inspect.divided.rows import Keys, Lines, RowWriter
from kraftwire.inspect.run.run import Totals

__all__ = ["Reader"]

_KEY = itemgetter(0)

# After so many stretches that were read in vain there are no more copies.
VAIN_MAX = 3


@dataclass(slots=True)
class _Turn:
    """A stretch, and the copy that reads it, None for the reader itself."""

    stretch: Stretch
    helper: Helper | None


@dataclass(slots=True)
class _Told:
    """A copy, and the version of what it knows."""

    helper: Helper
    version: tuple[int, int]


class Reader:
    """Reads a capture with `count` processes, and tells `progress` the number of frames.

    Raises: NotShared, OSError, StorageError.
    """

    def __init__(
        self,
        path: str,
        count: int,
        showing: Showing,
        writer: RowWriter,
        progress: Callable[[int], object],
    ) -> None:
        self._path = path
        self._progress = progress
        self._file = os.open(path, os.O_RDONLY)
        self._plan = Plan(self._file, count)
        self._showing = showing
        self._writer = writer
        self._share = Share(count)
        self._stretch = self._plan.first
        stream = Stretches(self._file, self._stretch, self._next_stretch)
        self._capture = Capture(stream, name=path, share=self._share)
        self._keys = Keys()
        self._turns: deque[_Turn] = deque()
        self._helpers: list[_Told] = []
        self._is_started = False
        self._vain = 0
        self._balance, self._began = Balance(), 0.0
        self._totals = Totals()

    def read(self, totals: Totals) -> None:
        """Write all lines, and add what was counted."""
        self._totals = totals
        totals.captures[self._path] = self._capture.health
        try:
            for frames in self._capture.lists():
                totals.frames += len(frames)
                self._show(frames, self._keys.of(self._share.take()), totals.findings)
        finally:
            self.stop()
            os.close(self._file)
        self._write()
        sink = self._showing.sink
        self._writer.write([sink.finish_lines()], sink.head_width)
        totals.shown += totals.frames

    def stop(self) -> None:
        """End the copies."""
        self._turns.clear()
        while self._helpers:
            self._helpers.pop().helper.stop()

    def _show(
        self, frames: Sequence[Frame], keys: Sequence[int], findings: Counter[str]
    ) -> None:
        for decoded in self._showing.sink.show(frames, keys, self._showing.decode):
            for finding in decoded.findings:
                findings[finding.id] += 1

    def _write(self, *others: Lines) -> None:
        sink = self._showing.sink
        sink.check_share(self._share.count)
        self._writer.write([sink.take_lines(), *others], sink.head_width)

    # -- whose turn it is ----------------------------------------------------------------------

    def _next_stretch(self) -> Stretch | None:
        """Return the stretch to read next, after those that copies have read."""
        self._write()
        self._progress(self._totals.frames)
        begin, position = self._stretch
        self._balance.note_own(process_time() - self._began, position - begin)
        if self._capture.problem or self._capture.place != position:
            # What follows is not made of packets, or a packet reaches into it.
            self.stop()
            self._stretch = self._plan.rest(position)
            return self._stretch if position < self._stretch[1] else None
        if not self._is_started:
            self._start_helpers()
        while len(self._turns) < QUEUE_MAX * self._share.count and self._plan_round():
            pass
        while self._turns:
            turn = self._turns.popleft()
            self._stretch = turn.stretch
            if turn.helper is None or not self._adopt(turn.helper):
                self._began = process_time()
                return self._stretch
        return None

    def _start_helpers(self) -> None:
        work = partial(read_ahead, (self._path, self._file), self._share.count, self._showing)
        self._balance = Balance()  # the first stretch has taken longer
        helpers = start(self._share.count - 1, work)
        version = self._showing.sink.version
        self._helpers = [_Told(helper, version) for helper in helpers]
        self._is_started = True

    def _plan_round(self) -> bool:
        """Let copies read the next stretches but the first one, which is read here."""
        stretches = self._plan.next_round(self._balance.own_part(self._share.count - 1))
        sink, helpers = self._showing.sink, self._helpers if self._vain < VAIN_MAX else []
        for told, stretch in zip_longest([None, *helpers], stretches):
            if stretch is None:
                break
            if told is None:
                self._turns.append(_Turn(stretch, None))
                continue
            news = sink.news(told.version)
            told.helper.read(stretch, news)
            told.version = news.version
            self._turns.append(_Turn(stretch, told.helper))
        return bool(stretches)

    def _adopt(self, helper: Helper) -> bool:
        """Take over what a copy has found; False if it does not fit."""
        packed = helper.find()
        began = process_time()
        if packed is not None:
            found: Found = unpack(packed, self._capture.connections.outbox)
            adoption, sink = Adoption(self._capture, found.passage), self._showing.sink
            if not sink.misfit(found.lines) and not adoption.misfit(sink.waiting):
                self._vain = 0
                adoption.carry_out()
                self._join(found)
                taken, size = process_time() - began, found.passage.size
                self._balance.note_copied(found.seconds, size, taken)
                return True
        self._vain += 1
        return False

    def _join(self, found: Found) -> None:
        """Show the frames that the copy has left, and write all lines of the stretch."""
        totals, sink = self._totals, self._showing.sink
        left = self._capture.connections.outbox.take()
        keys = Keys().of(self._share.take())
        # Among the frames that are left may be responses to requests that the copy has shown.
        sink.adopt(found.lines)
        for key, frame in sorted([*zip(keys, left, strict=True), *found.told], key=_KEY):
            names = sink.names
            self._show((frame,), (key,), totals.findings)
            if names != sink.names and frame in left:
                raise NotShared("a name comes from between two stretches")
        self._write(found.lines.lines)
        totals.frames += found.shown + len(left) + len(found.told)
        totals.findings.update(found.findings)
