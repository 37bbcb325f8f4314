"""The end of `kraftwire pipeline tail`: Ctrl-C, and the wait between two rounds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

__all__ = ["Stop"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A context in which Ctrl-C (or SIGTERM) ends the tail after the present round.

    The second one ends it at once, which loses nothing but that round. `tell` hears of the first.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._is_wanted = threading.Event()
        self._is_waiting = False
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> Self:
        self._before = [(each, signal.signal(each, self._hear)) for each in _SIGNALS]
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before:
            signal.signal(each, handler)

    def wait(self, seconds: float) -> bool:
        """Wait, unless it is time to end; returns whether to go on."""
        self._is_waiting = True
        is_over = self._is_wanted.wait(seconds)
        self._is_waiting = False
        return not is_over

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_wanted.is_set():
            raise KeyboardInterrupt
        if not self._is_waiting:
            self._tell("ending after this round; Ctrl-C again ends at once")
        self._is_wanted.set()
