"""The highest rate that three nodes sustain, for short and long records: ours and Kafka's
alternately.

Both quorums stay alive through all steps of a size, so that Java's compiler has done its work; the
other one has almost nothing to do meanwhile.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.rate.search import Search
from tests.bench.rate.step import IDLE_RATE, Step, measure, rest
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.kafka.maven import CACHE, KAFKA, directory_of
from tests.support.kafka.perf_quorum import JAVA, PerfLoad, PerfQuorum

__all__ = ["run"]

SIZES_VARIABLE = "KRAFTWIRE_BENCH_SIZES"
SECONDS_VARIABLE = "KRAFTWIRE_BENCH_SECONDS"

# Bytes of a record, and the rate that the search begins with.
START_RATES = {256: 5000, 4096: 2000}

WINDOW_SECONDS = 10.0
# Before the window, this share of its length passes, so that a rate's effect on queues shows.
SETTLE_SHARE = 0.4
# Kafka is compiled within a minute of load.
WARM_WINDOWS = 6

# By then the steps are six percent.
BISECTIONS = 3

FLOOR = 1.0

FREE_BYTES_MIN = 4_000_000_000

NODES = 3

_PACED_JAVA = Path(__file__).parents[1] / "java" / "PacedRaftServer.java"

# Each takes a new throughput as a line on its standard input.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "Kafka": (*JAVA[:-1], str(_PACED_JAVA)),
    "kraftwire": (sys.executable, "-m", "kraftwire", "perf", "--json", "--follows-input"),
}

_FAULTS = (AssertionError, OSError, LookupError)


class _Contestant:
    """A program's quorum and its search. Order: `close` at the end."""

    def __init__(self, name: str, size: int, window: float, folder: Path) -> None:
        self.name = name
        self.search = Search(START_RATES.get(size, 2000), BISECTIONS)
        self.best: Step | None = None
        self._size = size
        self._window = window
        self._folder = folder
        self._stack = ExitStack()
        self._quorum: PerfQuorum | None = None

    def take_turn(self) -> Step:
        """Try the next rate."""
        rate = self.search.rate
        assert rate is not None
        try:
            quorum = self._ready()
            step = measure(quorum, rate, self._window * SETTLE_SHARE, self._window)
            rest(quorum)
        except _FAULTS as fault:
            console.print(f"{self.name} at {rate:,}/s: {fault}", markup=False)
            self.close()
            step = Step(rate, 0.0, float("inf"))
        if step.is_held:
            self.best = step
        self.search.note(step.is_held)
        return step

    def close(self) -> None:
        """End the processes and remove their files; another turn starts new ones."""
        self._stack.close()
        self._quorum = None

    def _ready(self) -> PerfQuorum:
        if shutil.disk_usage(CACHE).free < FREE_BYTES_MIN:
            raise RuntimeError("the disk is nearly full")
        if self._quorum is None:
            place = self._stack.enter_context(
                tempfile.TemporaryDirectory(prefix="rate-", dir=self._folder)
            )
            commands = [PROGRAMS[self.name]] * NODES
            load = PerfLoad(IDLE_RATE, self._size)
            quorum = self._stack.enter_context(PerfQuorum(Path(place), commands, load))
            quorum.wait_for(2)
            self._warm_up(quorum)
            self._quorum = quorum
        return self._quorum

    def _warm_up(self, quorum: PerfQuorum) -> None:
        rate = self.search.held or START_RATES.get(self._size, 2000)
        end = time.monotonic() + self._window * WARM_WINDOWS
        while time.monotonic() < end:
            measure(quorum, rate, 0.0, self._window)
            rest(quorum)


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    sizes = os.environ.get(SIZES_VARIABLE, ",".join(map(str, START_RATES))).split(",")
    names = list(PROGRAMS)
    if shutil.which("java") is None or not directory_of(KAFKA).is_dir():
        console.print("Kafka is skipped: no java, or the tests have not fetched its jars")
        names.remove("Kafka")
    rows: list[tuple[str, ...]] = []
    bars: list[Bar] = []
    for size in map(int, sizes):
        found = _search(size, names)
        rows += _rows(size, found)
        held = {one.name: one.search.held for one in found}
        if len(held) == len(PROGRAMS) and held["Kafka"]:
            ratio = held["kraftwire"] / held["Kafka"]
            bars.append(Bar(f"3 nodes, {size} B: highest rate / Kafka's", ratio, FLOOR))
    columns = ("", "program", "held, records/s", "MB/s", "p99 ms", "not held")
    print_table("Rate: the highest that three nodes sustain", columns, rows)
    return print_bars("Rate: summary", bars)


def _search(size: int, names: Sequence[str]) -> list[_Contestant]:
    """Let the programs take turns until both searches have ended."""
    window = float(os.environ.get(SECONDS_VARIABLE, WINDOW_SECONDS))
    folder = CACHE / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    found = [_Contestant(name, size, window, folder) for name in names]
    with ExitStack() as stack:
        for one in found:
            stack.callback(one.close)
        while any(one.search.rate for one in found):
            for one in found:
                if one.search.rate:
                    _print(size, one.name, one.take_turn())
    return found


def _print(size: int, name: str, step: Step) -> None:
    """Print the result of a step at once: the tables follow much later."""
    verdict = "held" if step.is_held else "not held"
    told = f"{step.share:.1%} committed, p99 {step.p99 * 1000:,.0f} ms: {verdict}"
    console.print(f"{size} B  {name:9}  {step.rate:>8,}/s  {told}", markup=False)


def _rows(size: int, found: Sequence[_Contestant]) -> Iterator[tuple[str, ...]]:
    for one in found:
        held, missed = one.search.held, one.search.missed
        p99 = "-" if one.best is None else f"{one.best.p99 * 1000:,.0f}"
        megabytes = f"{held * size / 1e6:.1f}"
        yield f"{size} B", one.name, f"{held:,}", megabytes, p99, f"{missed:,}" if missed else "-"
