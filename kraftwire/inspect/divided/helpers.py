"""Copies of the process that read stretches on request, and what they are told before."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import IO, NoReturn

from kraftwire.capture.connections.share import NotShared
from kraftwire.capture.packets.stretches import Stretch
from kraftwire.errors import StorageError
from kraftwire.inspect.run.forked import Copy, Original, split
from kraftwire.inspect.shared_line import News

__all__ = ["Helper", "Work", "start"]

# How many stretches a copy knows of: the one that it reads, and the next one.
QUEUE_MAX = 2


# Reads a stretch, after some news; returns what was found, packed.
Work = Callable[[Stretch, News], bytes]


class Helper:
    """A copy, as seen by the process that made it."""

    def __init__(self, copy: Copy, descriptor: int) -> None:
        self._copy = copy
        self._tasks = os.fdopen(descriptor, "wb")

    def read(self, stretch: Stretch, news: News) -> None:
        """Let the copy read a stretch; `find` returns the results in the same order."""
        pickle.dump((stretch, news), self._tasks)
        self._tasks.flush()

    def find(self) -> bytes | None:
        """Wait for what was found in a stretch; None if that cannot be known."""
        found: bytes | None = self._copy.hear()
        return found

    def forget(self) -> None:
        """Close this end, in a copy that has no business with it."""
        self._tasks.close()
        os.close(self._copy.descriptor)

    def stop(self) -> None:
        """End the copy at once, whatever it does."""
        self._copy.stop()
        with suppress(OSError):
            self._tasks.close()


def start(count: int, work: Work) -> list[Helper]:
    """Make copies, fewer if there is no room. Order: while there is only one thread."""
    helpers: list[Helper] = []
    with suppress(OSError):
        while len(helpers) < count:
            helpers.append(_start(work, helpers))
    return helpers


def _start(work: Work, others: Iterable[Helper]) -> Helper:
    reading, writing = os.pipe()
    try:
        other = split()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if isinstance(other, Copy):
        os.close(reading)
        return Helper(other, writing)
    os.close(writing)
    for each in others:
        each.forget()
    return _work(work, reading, other)


def _work(work: Work, descriptor: int, original: Original) -> NoReturn:
    """Act as the copy. Does not return."""
    with os.fdopen(descriptor, "rb") as tasks:
        original.leave(lambda: _serve(work, tasks, original))


def _serve(work: Work, tasks: IO[bytes], original: Original) -> None:
    """Do all tasks; results are sent by a thread, which waits in place of the work."""
    results: SimpleQueue[bytes | None] = SimpleQueue()
    Thread(target=_send, args=(results, original), daemon=True).start()
    for stretch, news in _tasks(tasks):
        try:
            results.put(work(stretch, news))
        except (NotShared, StorageError):
            results.put(None)


def _tasks(tasks: IO[bytes]) -> Iterator[tuple[Stretch, News]]:
    with suppress(EOFError):
        while True:
            yield pickle.load(tasks)


def _send(results: SimpleQueue[bytes | None], original: Original) -> None:
    with suppress(OSError):
        while True:
            original.tell(results.get())
