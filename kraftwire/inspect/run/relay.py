"""Stretches of a run that copies of the process show, while the process itself reads on.

Owns who shows which frames. A copy is made where a stretch begins, knows all that the run knows by
then, shows the stretch and ends. The process passes over the frames of the stretch, which is to
read and to learn as if it had shown them; then it shows what follows, until a copy is done and it
can make the next one. So every frame is shown by a process that knows what a single process would
know, and stretches are written one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kraftwire.errors import KraftwireError
from kraftwire.inspect.run.chunking import CHECKED_FRAMES, Pace
from kraftwire.inspect.run.forked import ENDED_EARLY, Copy, Original, is_ready, split
from kraftwire.inspect.run.ordered_output import InTurn

__all__ = ["Relay"]


@dataclass(slots=True)
class Relay:
    """Shares the frames of a run among `count` processes.

    `out` is where the run writes to, and `progress` is told the number of frames now and then.
    `hand_over` has to put all that the run holds back into `out`, and `take` to return what
    was counted since the last time; the run sets them. Order: `turn` when it said so, `end` after
    the frames of each input, `finish` after everything, or `stop`.
    """

    count: int
    out: InTurn
    progress: Callable[[int], object]
    hand_over: Callable[[], object] = lambda: None
    take: Callable[[], Any] = lambda: None
    # Set in a copy.
    original: Original | None = None
    # Counts in the order of frames, with the copies that have not reported theirs yet.
    _counted: list[Any] = field(default_factory=list)
    _running: list[Copy] = field(default_factory=list)
    _pace: Pace | None = None
    _is_passing: bool = False

    def begin(self, number: int, part_read: Callable[[], float]) -> int:
        """Begin an input; returns the number of the frame before which to ask for a `turn`."""
        self._pace = Pace(self.count, number, part_read)
        self._pace.start(number)
        return number + CHECKED_FRAMES

    def turn(self, number: int) -> tuple[bool, int]:
        """Decide about frames from a number on: whether to pass over them, and when to ask next.

        Does not return in a copy whose stretch is over.
        """
        pace = self._pace
        assert pace is not None
        if self.original is not None:
            self._leave()
        if not self._is_passing:
            pace.stop(number)
        self._is_passing = False
        self._hear_some()
        if len(self._running) < self.count - 1 and (size := pace.stretch(number)):
            self._is_passing = self._split(number)
            if self._is_passing or self.original is not None:
                return self._is_passing, number + size
        pace.start(number)
        return False, number + CHECKED_FRAMES

    def end(self) -> None:
        """End the frames of an input. Does not return in a copy."""
        if self.original is not None:
            self._leave()
        self._is_passing = False

    def fail(self, error: BaseException) -> None:
        """Leave with an error, if this is a copy."""
        if self.original is not None:
            self.original.leave(lambda: error)

    def finish(self) -> list[Any]:
        """Wait until all is written; returns what was counted, in the order of frames."""
        self.out.finish()
        for copy in list(self._running):
            self._hear(copy)
        self._counted.append(self.take())
        return self._counted

    def reason(self, error: Exception) -> Exception:
        """The error that a copy has ended with, if that is what an error is about."""
        if str(error) == ENDED_EARLY:
            for copy in self._running:
                if is_ready(copy.descriptor):
                    try:
                        copy.hear()
                    except (KraftwireError, OSError) as other:
                        if str(other) != ENDED_EARLY:
                            return other
        return error

    def stop(self) -> None:
        """End the copies that run, if there are any."""
        while self._running:
            self._running.pop().stop()

    def _split(self, number: int) -> bool:
        """Make a copy that shows what comes next; False if there is none, and in the copy."""
        self.progress(number)
        self.hand_over()
        counted = self.take()
        ends = self.out.prepare()
        try:
            other = split()
        except OSError:
            return self._go_on_alone(ends, counted)
        if isinstance(other, Original):
            self.original = other
            self.out.go(ends)
            return False
        self.out.stay(ends)
        self._counted += counted, other
        self._running.append(other)
        return True

    def _go_on_alone(self, ends: tuple[int, int], counted: Any) -> bool:
        """Continue without a copy, because the system has no room for one."""
        for each in ends:
            os.close(each)
        self._counted.append(counted)
        self.count = 1
        return False

    def _leave(self) -> None:
        """End this copy, whose stretch is over."""
        assert self.original is not None
        self.original.leave(self._written)

    def _written(self) -> Any:
        self.hand_over()
        self.out.finish()
        return self.take()

    def _hear_some(self) -> None:
        """Collect the counts of copies that have finished."""
        for copy in list(self._running):
            if is_ready(copy.descriptor):
                self._hear(copy)

    def _hear(self, copy: Copy) -> None:
        self._counted[self._counted.index(copy)] = copy.hear()
        self._running.remove(copy)
        copy.wait()
