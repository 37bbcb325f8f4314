"""Stops `kraftwire pipeline tail` on Ctrl-C, and waits between two rounds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FrameType

from kraftwire.cli.pipeline.ending import Ending


class Stop(Ending):
    """A context in which Ctrl-C (or SIGTERM) stops the tail after the present round.

    A second one stops it at once, which loses only that round. `report` is called with a line
    for either.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report
        self._is_wanted = threading.Event()
        self._is_waiting = False

    def wait(self, seconds: float) -> bool:
        """Wait, unless it is time to stop; return whether to continue."""
        self._is_waiting = True
        is_over = self._is_wanted.wait(seconds)
        self._is_waiting = False
        return not is_over

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self._is_wanted.is_set():
            self._report("stopped; the next start does this round again")
            self._interrupt(number)
        if not self._is_waiting:
            self._report("stopping after this round; Ctrl-C again stops at once")
        self._is_wanted.set()
