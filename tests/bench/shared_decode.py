"""Decoding a capture by two processes against one: lines, trees and JSON lines.

What bounds the time on two free processors counts, not the clock: the CPU time of the command
itself, which starts everything, and then that of the busiest process, or half of that of all others
if it is more. So figures hold on a machine that does other work.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import run_process
from tests.bench.report import Bar, print_bars, print_table

__all__ = ["contest"]

_FLOOR = 1.5
_JOB_PEAK_MAX = 100
_ROUNDS = 2
# Looking takes a fraction of a millisecond.
_INTERVAL_S = 0.01

_OUTPUTS = {
    "lines": (),
    "-v": ("-v",),
    "JSON lines": ("--format", "jsonl", "--records", "summary"),
}


@dataclass(frozen=True, slots=True)
class _Shared:
    """What a command took that makes processes, of which it is the first. Units: seconds, bytes."""

    first_seconds: float
    busiest_seconds: float
    all_seconds: float
    peak_bytes: int

    @property
    def bound_seconds(self) -> float:
        """The least that it takes on two processors."""
        others = self.all_seconds - self.first_seconds
        return self.first_seconds + max(self.busiest_seconds, others / 2)


def contest(name: str, capture: Path, engines: Mapping[str, str]) -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    rows, bars = [], []
    for output, options in _OUTPUTS.items():
        for engine, pure in engines.items():
            command = [program, "decode", "--quiet", str(capture), *options]
            variables = {"KRAFTWIRE_PURE": pure}
            one, two = _best(command, variables)
            title = f"{engine} {output}"
            took = (one, two.all_seconds, two.first_seconds, two.busiest_seconds)
            rows.append((title, *(f"{each:.2f}" for each in took), f"{two.peak_bytes / 1e6:.0f}"))
            bars.append(Bar(f"{title}, two jobs / one", one / two.bound_seconds, _FLOOR))
            peak = two.peak_bytes / 1e6
            bar = Bar(f"peak of a job, {title}", peak, _JOB_PEAK_MAX, unit="MB", is_ceiling=True)
            bars.append(bar)
    columns = ("output", "one job, CPU s", "two jobs", "the first", "the busiest", "its peak MB")
    print_table(f"Capture by two jobs: {name}", columns, rows)
    return print_bars(f"Capture by two jobs: {name} (CPU time)", bars)


def _best(command: Sequence[str], variables: Mapping[str, str]) -> tuple[float, _Shared]:
    """CPU time of one process, and the best round of two."""
    ones, twos = [], []
    for _ in range(_ROUNDS):
        ones.append(run_process([*command, "--jobs", "1"], variables=variables).cpu_seconds)
        twos.append(_run([*command, "--jobs", "2"], variables))
    return min(ones), min(twos, key=lambda each: each.bound_seconds)


def _run(command: Sequence[str], variables: Mapping[str, str]) -> _Shared:
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=os.environ | dict(variables),
    ) as process:
        seconds: dict[int, float] = {}
        peak = 0
        while True:
            pid, _, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            for each in _descendants(process.pid):
                peak = max(peak, _look(each, seconds))
            time.sleep(_INTERVAL_S)
        process.returncode = 0
    first = seconds.pop(process.pid, 0.0)
    # What was taken after the last look is not known.
    busiest = max(seconds.values(), default=0.0) + _INTERVAL_S
    return _Shared(first, busiest, usage.ru_utime + usage.ru_stime, peak)


def _look(pid: int, seconds: dict[int, float]) -> int:
    """Take note of the CPU time of a process; returns its memory, 0 if it has ended."""
    try:
        seconds[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _descendants(pid: int) -> list[int]:
    """A process, and all that descend from it."""
    found = [pid]
    for each in found:
        try:
            children = Path(f"/proc/{each}/task/{each}/children").read_text()
        except OSError:
            continue
        found += map(int, children.split())
    return found
