"""Readers of a capture as processes of their own, each a copy of the one that joins their lines."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

from kraftwire.decode.divided.reports import Event, Line
from kraftwire.decode.run.forked import Copy, Original, split

__all__ = ["ReaderProcess", "Work", "start_readers"]

# Does the work of the reader with a number; returns its last report.
Work = Callable[[int, Line], object]


class ReaderProcess:
    """A reader, as seen by the process that joins the lines."""

    def __init__(self, copy: Copy, descriptor: int) -> None:
        self._copy = copy
        self._file = os.fdopen(descriptor, "wb")
        self._events: SimpleQueue[Sequence[Event] | None] = SimpleQueue()
        # It waits in place of the joiner, for whom the reader may be waiting itself.
        self._writer = Thread(target=self._write, daemon=True)

    def hear(self) -> Any:
        """Wait for the next report. Raises: the error that the reader has ended with."""
        return self._copy.hear()

    def tell(self, events: Sequence[Event]) -> None:
        """Report what the other readers have found in a block, without waiting.

        Order: once all readers are started.
        """
        if not self._writer.is_alive():
            self._writer.start()
        self._events.put(events)

    def _write(self) -> None:
        with suppress(OSError):
            while (events := self._events.get()) is not None:
                pickle.dump(events, self._file)
                self._file.flush()

    def forget(self) -> None:
        """Close this end, in a copy that has no business with it."""
        self._file.close()
        os.close(self._copy.descriptor)

    def stop(self) -> None:
        """End the process at once, whatever it does."""
        self._copy.stop()
        self._events.put(None)
        if self._writer.is_alive():
            self._writer.join()
        with suppress(OSError):
            self._file.close()


def start_readers(count: int, work: Work) -> list[ReaderProcess]:
    """Start processes. Order: while there is only one thread. Raises: OSError."""
    started: list[ReaderProcess] = []
    try:
        for number in range(count):
            started.append(_start(number, work, started))
    except OSError:
        for each in started:
            each.stop()
        raise
    return started


def _start(number: int, work: Work, before: Sequence[ReaderProcess]) -> ReaderProcess:
    reading, writing = os.pipe()
    try:
        other = split()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if isinstance(other, Copy):
        os.close(reading)
        return ReaderProcess(other, writing)
    os.close(writing)
    for each in before:
        each.forget()
    return _work(number, work, other, reading)


def _work(number: int, work: Work, original: Original, descriptor: int) -> ReaderProcess:
    """Do the work in the copy. Does not return."""
    events = os.fdopen(descriptor, "rb")
    line = Line(original.tell, lambda: _next_events(events))
    original.leave(lambda: work(number, line))


def _next_events(file: IO[bytes]) -> Sequence[Event]:
    """Wait for events. Raises: BrokenPipeError if the joiner has ended."""
    try:
        events: Sequence[Event] = pickle.load(file)
    except EOFError:
        raise BrokenPipeError from None
    return events
