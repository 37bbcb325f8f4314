"""A run of inputs through one output, in one process or several, and the totals after it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import TextIOWrapper
from typing import IO, Any

from kraftwire.cli.decoding.jobs import in_processes
from kraftwire.cli.decoding.problems import Problems
from kraftwire.cli.decoding.progress import Progress
from kraftwire.cli.output import say
from kraftwire.collector import collect_rarely
from kraftwire.decode.body.capture_context import Memory
from kraftwire.decode.body.records import Settings
from kraftwire.decode.options import Options
from kraftwire.decode.sinks import Sink
from kraftwire.inspect.run.inputs import InputKind, Inputs, is_live
from kraftwire.inspect.run.parallel import Relay
from kraftwire.inspect.run.run import Run, Totals
from kraftwire.inspect.run.summary import summary

# A batch is at most this late; a metadata log gets one every half second.
_FOLLOW_S = 0.2

# Makes the output of a run, which writes to a stream.
MakeSink = Callable[[Settings, Any], Sink]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The inputs of a command, and how they are read.

    `raw_api` are key and version of the requests that raw frames answer; None if these are
    requests. With `is_following` the only input is a segment that grows.
    """

    inputs: tuple[str, ...]
    options: Options
    kind: InputKind = "auto"
    raw_api: tuple[int, int] | None = None
    is_merging: bool = True
    is_following: bool = False
    is_quiet: bool = False

    @property
    def is_live(self) -> bool:
        """Whether each line is to be written at once."""
        return self.is_following or is_live(self.inputs)

    def start(self, make_sink: MakeSink, stream: IO[Any], relay: Relay | None = None) -> Run:
        """Begin a run. Raises: UsageError for filters that make no sense."""
        memory = Memory()
        sink = make_sink(self.options.settings(memory), relay.out if relay else stream)
        return Run(self.options, sink, memory, relay=relay)

    def read(self, run: Run) -> None:
        """Read the inputs, and report what is wrong with them."""
        problems = Problems()
        run.totals.files.on_finding = problems.finding
        try:
            inputs = Inputs(run, problems.unreadable, self.kind, self.raw_api, self.is_merging)
            if self.is_following:
                inputs.follow(self.inputs, _wait)
            else:
                inputs.read(self.inputs)
        finally:
            run.finish()
        problems.finish()


def show(
    reading: Reading,
    make_sink: MakeSink,
    stream: IO[Any] | None = None,
    *,
    jobs: int = 1,
    young_objects: int | None = None,
) -> int:
    """Show the inputs by an output, report the totals, and return the exit code.

    The output is made with a stream, standard output as text unless another one is given.
    `young_objects` is for the garbage collector, see `collect_rarely`.
    """
    stream = text_output() if stream is None else stream
    collect_rarely(young_objects)
    if jobs > 1:
        totals = _show_in_processes(reading, make_sink, stream, jobs)
    else:
        run = reading.start(make_sink, stream)
        with Progress(run.totals, is_wanted=not reading.is_quiet):
            reading.read(run)
        totals = run.totals
    if not reading.is_quiet:
        _report(totals)
    return int(totals.exit_code)


def _show_in_processes(
    reading: Reading, make_sink: MakeSink, stream: IO[Any], count: int
) -> Totals:
    def work(relay: Relay) -> Totals:
        run = reading.start(make_sink, stream, relay)
        reading.read(run)
        run.finish_relay()
        run.totals.files.on_finding = None
        return run.totals

    totals = Totals()
    progress = Progress(totals, is_wanted=not reading.is_quiet)
    found: Totals = in_processes(count, work, stream, totals, progress)
    return found


def _report(totals: Totals) -> None:
    for line in summary(totals):
        say(f"kraftwire: {line}")
    if totals.has_more and not totals.has_shown:
        say("kraftwire: nothing passes the filters")


def _wait() -> bool:
    """Flush the output, then wait for more input to be written; always returns True."""
    sys.stdout.flush()
    time.sleep(_FOLLOW_S)
    return True


def text_output() -> IO[str]:
    """Return standard output for text."""
    if isinstance(sys.stdout, TextIOWrapper):
        # Names are UTF-8 on the wire; a terminal of another kind must not end the run.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout


def is_coloured() -> bool:
    """Whether the output has colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
