"""`kraftwire decode --jobs`: a run in several processes, with the output of one.

Owns how many processes there are, and the first of them, which reads everything; the others are
workers of `inspect.run.parallel`. The process of the command itself only waits, and may show the
progress meanwhile.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import IO, Any, NoReturn

from kraftwire.errors import KraftwireError
from kraftwire.inspect.run.inputs import STDIN, is_capture
from kraftwire.inspect.run.parallel import OrderedOutput, Parent, Relay, fork
from kraftwire.inspect.run.run import Totals

# The smallest size of captures that is worth more than one process, and the most processes that
# help: one of them has to cut all packets into frames.
_JOBS_BYTES_MIN = 50_000_000
_JOBS_MAX = 8


def job_count(wanted: int | None, inputs: Iterable[str]) -> int:
    """Return how many processes to use; `wanted` is the number that the user requested."""
    paths = list(inputs)
    if wanted == 1 or STDIN in paths or not hasattr(os, "fork"):
        return 1
    if wanted is not None:
        return wanted
    if not all(map(os.path.isfile, paths)):
        return 1
    if sum(os.path.getsize(path) for path in paths) < _JOBS_BYTES_MIN:
        return 1
    return min(_processors(), _JOBS_MAX) if all(map(is_capture, paths)) else 1


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def in_processes(
    count: int,
    work: Callable[[Relay], object],
    stream: IO[Any],
    totals: Totals,
    watching: AbstractContextManager[object],
) -> Any:
    """Do some work in processes that share a relay onto a stream; returns its result.

    Meanwhile the number of frames in `totals` grows. Order: `watching` is entered once this
    process forks no more, so it may start threads.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reader = fork()
    if isinstance(reader, Parent):
        _read_all(reader, Relay(count, OrderedOutput(stream), reader.send), work)
    try:
        with watching:
            while isinstance(received := reader.receive(), int):
                totals.frames = received
    finally:
        reader.stop()
    return received


def _read_all(parent: Parent, relay: Relay, work: Callable[[Relay], object]) -> NoReturn:
    """Act as the process that reads everything. Does not return."""

    def result() -> object:
        try:
            return work(relay)
        except (KraftwireError, OSError) as error:
            raise relay.reason(error) from None
        finally:
            relay.stop()

    parent.exit_with(result)
