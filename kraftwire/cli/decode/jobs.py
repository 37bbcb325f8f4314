"""`kraftwire decode --jobs`: a run in several processes, whose output is that of one.

Owns the processes: each reads all packets and decodes its share of the exchanges; see
`decode.run.share`. What they write is put in order here.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kraftwire.cli.decode.output import Output
from kraftwire.cli.output import put_ready
from kraftwire.decode.run.inputs import STDIN, is_capture
from kraftwire.decode.run.run import Run, Totals
from kraftwire.decode.run.share import Headings, Part, Share, Turned
from kraftwire.errors import KraftwireError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Job", "Jobs", "job_count"]

# Captures from this size on are worth more than one process, and up to so many are worth their
# while: all of them have to cut packets into frames.
_JOBS_BYTES_MIN = 50_000_000
_JOBS_MAX = 8

# Cutting frames is half of the work of lines, which is why they get one process unless more are
# asked for. Of the other outputs it is a tenth.
_CHEAP = Output.LINE

# Outputs that show frame by frame; the others sum up.
_SHARED = frozenset({Output.LINE, Output.TREE, Output.BYTES, Output.JSONL})
# Of these an exchange is shown as a whole, so with filters one process has to see both frames.
_PAIRED = _SHARED - {Output.JSONL}


def job_count(
    wanted: int | None, inputs: Iterable[str], output: Output, *, has_filters: bool
) -> int:
    """How many processes to use; `wanted` is what the user asks for."""
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
    if output is _CHEAP or not all(map(os.path.isfile, paths)):
        return 1
    if sum(os.path.getsize(path) for path in paths) < _JOBS_BYTES_MIN:
        return 1
    return min(_processors(), _JOBS_MAX) if all(map(is_capture, paths)) else 1


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@dataclass(slots=True)
class Job:
    """What a process does with its share: makes a run that writes to a stream, and reads all."""

    share: Share
    turned: Turned


# Makes the run of a job and reads the inputs.
Work = Callable[[Job], Run]


@dataclass(slots=True)
class Jobs:
    """Several processes that do one run.

    Shape: `totals` are complete at the end.
    """

    count: int
    work: Work
    totals: Totals = field(default_factory=Totals)

    def run(self, output: Output, watching: AbstractContextManager[object]) -> None:
        """Start the processes and write what they show to standard output, in order.

        Order: `watching` is entered once all processes are there, so it may start threads.
        """
        from heapq import merge

        sys.stdout.flush()
        sys.stderr.flush()
        with ExitStack() as stack:
            connections = [self._start(Share(at, self.count), stack) for at in range(self.count)]
            stack.enter_context(watching)
            parts = merge(*(self._parts(each) for each in connections))
            if output is Output.JSONL:
                for part in parts:
                    self._see(part)
                    sys.stdout.buffer.write(part[3])
                sys.stdout.buffer.flush()
                return
            for text in Headings().without(self._text(part) for part in parts):
                put_ready(text)
            sys.stdout.flush()

    def _text(self, part: Part) -> str:
        self._see(part)
        return str(part[3])

    def _see(self, part: Part) -> None:
        """Keep the count of frames up to date, for those who watch."""
        if part[0] != float("inf"):
            self.totals.frames = int(part[0])

    def _start(self, share: Share, stack: ExitStack) -> Connection:
        from multiprocessing import get_context  # slow to import

        # A forked child has all modules already; no threads run yet.
        context = get_context("fork")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_do, args=(self.work, share, there, here), daemon=True)
        process.start()
        there.close()
        stack.callback(process.join)
        stack.callback(process.terminate)
        stack.callback(here.close)
        return here

    def _parts(self, connection: Connection) -> Iterator[Part]:
        """What a process writes; then its totals are added."""
        while True:
            try:
                sent = connection.recv()
            except EOFError:
                raise KraftwireError("a job ended before its work was done") from None
            if isinstance(sent, Totals):
                self._add(sent)
                return
            if isinstance(sent, BaseException):
                raise sent
            yield from sent

    def _add(self, other: Totals) -> None:
        """Add the totals of a share: frames and captures are the same in all of them."""
        totals = self.totals
        totals.frames, totals.captures = other.frames, other.captures
        totals.shown += other.shown
        totals.findings.update(other.findings)
        totals.unreadable = max(totals.unreadable, other.unreadable)
        if other.files.files:
            totals.files = other.files


def _do(work: Work, share: Share, out: Connection, other_end: Connection) -> None:
    """The work of a process."""
    other_end.close()
    turned = Turned(share.index, out.send, is_terminal=sys.stdout.isatty())
    gc.freeze()
    try:
        result: Any = work(Job(share, turned)).totals
        result.files.on_finding = None
    except (KraftwireError, OSError) as error:
        result = error
    except KeyboardInterrupt:
        return
    try:
        turned.send()
        out.send(result)
    except BrokenPipeError:
        return
    finally:
        out.close()
