"""Ends `kraftwire pipeline` on a signal: a run at once, a tail between two rounds."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# What a shell reports of a program that a signal ended.
_EXIT_INTERRUPTED = 128 + signal.SIGINT
_EXIT_TERMINATED = 128 + signal.SIGTERM


@contextmanager
def ended_at_once(report: Callable[[], None]) -> Iterator[None]:
    """A context in which a signal that an `Ending` raised ends this process after a report.

    Nothing waits for a start or a job of Spark: Java ends by itself when this process is gone, and
    a run can be killed at any moment.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as error:
        report()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_EXIT_TERMINATED if isinstance(error, SystemExit) else _EXIT_INTERRUPTED)


class Ending:
    """A context of a run that a signal or an error may end early.

    A signal raises KeyboardInterrupt, or SystemExit for SIGTERM, in place of the errors that the
    interrupted call to Java raises.
    """

    def __init__(self) -> None:
        self._before: list[tuple[int, Any]] = []
        self._raised: BaseException | None = None

    def __enter__(self) -> Self:
        self._before = [(each, signal.signal(each, self._hear)) for each in _SIGNALS]
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        for each, handler in self._before:
            signal.signal(each, handler)
        if self._raised is not None and error is not self._raised:
            raise self._raised from None

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._interrupt(number)

    def _interrupt(self, number: int) -> None:
        """Leave what the main thread does."""
        # The bridge to Java logs an interrupted call, and its broken connection, with tracebacks.
        logging.disable(logging.CRITICAL)
        is_term = number == signal.SIGTERM
        self._raised = SystemExit(_EXIT_TERMINATED) if is_term else KeyboardInterrupt()
        raise self._raised


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
