"""`kraftwire decode --jobs`: a run in several processes, whose output is that of one.

Owns how many processes there are, and the first of them, which reads everything; see
`decode.run.relay` for what the others do. The process of the command itself only waits, and
may show the progress meanwhile.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NoReturn

from kraftwire.cli.decode.output import Output, standard_output
from kraftwire.errors import KraftwireError
from kraftwire.inspect.run.forked import Original, split
from kraftwire.inspect.run.inputs import STDIN, is_capture
from kraftwire.inspect.run.ordered_output import InTurn
from kraftwire.inspect.run.relay import Relay
from kraftwire.inspect.run.run import Run

__all__ = ["Jobs", "job_count"]

# The smallest size of captures that is worth more than one process, and the most processes that
# help: one of them has to cut all packets into frames.
_JOBS_BYTES_MIN = 50_000_000
_JOBS_MAX = 8

# Outputs that show each frame; the others show totals.
_SHARED = frozenset({Output.LINE, Output.TREE, Output.BYTES, Output.JSONL})
# These show whole exchanges, so with filters one process has to see both frames.
_PAIRED = _SHARED - {Output.JSONL}


def job_count(
    wanted: int | None, inputs: Iterable[str], output: Output, *, has_filters: bool
) -> int:
    """Return how many processes to use; `wanted` is the number that the user requested."""
    paths = list(inputs)
    if (
        wanted == 1
        or STDIN in paths
        or output not in _SHARED
        or (has_filters and output in _PAIRED)
        or not hasattr(os, "fork")
    ):
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


# Makes the run of a relay and reads the inputs.
Work = Callable[[Relay], Run]


@dataclass(frozen=True, slots=True)
class Jobs:
    """Several processes that share one run."""

    count: int
    work: Work

    def do(self, run: Run, output: Output, watching: AbstractContextManager[object]) -> None:
        """Carry out the run; afterwards `run` has the totals.

        Order: `watching` is entered once this process makes no more copies, so it may start
        threads.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        first = split()
        if isinstance(first, Original):
            self._work(first, output)
        try:
            with watching:
                while isinstance(said := first.hear(), int):
                    run.totals.frames = said
        finally:
            first.stop()
        run.totals, run.offered = said

    def _work(self, original: Original, output: Output) -> NoReturn:
        """Act as the process that reads everything. Does not return."""
        relay = Relay(self.count, InTurn(standard_output(output)), original.tell)

        def work() -> Any:
            try:
                run = self.work(relay)
            except (KraftwireError, OSError) as error:
                raise relay.reason(error) from None
            finally:
                relay.stop()
            run.totals.files.on_finding = None
            return run.totals, run.offered

        original.leave(work)
