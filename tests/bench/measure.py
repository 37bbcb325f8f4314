"""Clocks and statistics of the benchmarks: how to time things so that two runs agree.

CPU time, not wall time, in interleaved rounds: whatever else the machine does then disturbs all
contestants alike. Times are those of the best round, ratios the median over the rounds.
"""

from __future__ import annotations

import gc
import math
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kraftwire.collector import rare_collection

__all__ = ["Contest", "Run", "contest", "geometric_mean", "run_process"]

# Many short rounds hit a quiet moment on a busy machine sooner than a few long ones.
ROUND_SECONDS = 0.004
ROUNDS = 25
ROUNDS_MIN = 7
# Enough to hit a quiet moment, for calls that are long themselves.
CONTEST_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Contest:
    """The time of every contestant in every round. Units: CPU seconds per call."""

    rounds: dict[str, list[float]]

    def best(self, name: str) -> float | None:
        """The best round of a contestant, None if it did not take part."""
        return min(self.rounds[name]) if name in self.rounds else None

    def ratio(self, name: str, other: str) -> float:
        """How many times as fast as the other a contestant is: the median over the rounds.

        The rounds of both are within milliseconds of each other, so a machine whose speed changes
        from one second to the next affects both.
        """
        pairs = zip(self.rounds[name], self.rounds[other], strict=True)
        return median(theirs / mine for mine, theirs in pairs)


def contest(
    contestants: Mapping[str, Callable[[], object]],
    enter: Callable[[str], bool] = lambda _: False,
    others: Mapping[str, Callable[[], float]] | None = None,
) -> Contest:
    """Let contestants take turns for some rounds.

    The garbage collector is on, with the thresholds that our own programs set: how often it
    scans the whole process depends on what else is in it, here the other contestants.

    Order: `enter` is told whose turn it is; if it returns True it has changed something, and the
    contestant is called once before the clock starts. `others` take part in every round, and return
    their own CPU seconds, because they are separate processes.
    """
    gc.enable()
    with rare_collection():
        return Contest(_rounds(contestants, enter, others or {}))


def _rounds(
    contestants: Mapping[str, Callable[[], object]],
    enter: Callable[[str], bool],
    others: Mapping[str, Callable[[], float]],
) -> dict[str, list[float]]:
    repeats = {}
    for name, call in contestants.items():
        enter(name)
        repeats[name] = _repeats(call)
    rounds: dict[str, list[float]] = {name: [] for name in (*contestants, *others)}
    end = time.perf_counter() + CONTEST_SECONDS
    for number in range(ROUNDS):
        if number >= ROUNDS_MIN and time.perf_counter() > end:
            break
        gc.collect()
        for name, call in contestants.items():
            if enter(name):
                call()
            rounds[name].append(_time(call, repeats[name]) / repeats[name])
        for name, measure in others.items():
            rounds[name].append(measure())
    return rounds


def _repeats(call: Callable[[], object]) -> int:
    """How many calls fill one round; also warms up every cache."""
    repeats = 1
    while _time(call, repeats) < ROUND_SECONDS:
        repeats *= 2
    return repeats


def _time(call: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return time.process_time() - start


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios: twice as fast and half as fast cancel out."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


@dataclass(frozen=True, slots=True)
class Run:
    """The time and memory of one process. Units: seconds, bytes."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    exit_code: int


def run_process(
    command: Sequence[str],
    *,
    output: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Run:
    """Run a command to its end, with its standard output in a file (or discarded).

    `variables` are added to the environment. The peak is at least what the calling
    process occupies at that moment, since a new process begins as a copy of it.
    """
    with open(output or os.devnull, "wb") as sink:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.DEVNULL,
            env=_environment() | dict(variables or {}),
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(wall, usage.ru_utime + usage.ru_stime, _peak(usage), process.returncode)


def _environment() -> dict[str, str]:
    """Our environment, but with compiled modules kept, as in an installed package."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _peak(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * 1024
