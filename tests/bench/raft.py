"""The raft test server next to Kafka's: committed records and latency, alternately on one machine.

Both get the same properties files and flags. What is committed is not their own report: an observer
reads the high watermark by Fetch at both ends of a time window. Latencies are their own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.kafka.maven import CACHE, KAFKA, directory_of
from tests.support.kafka.perf_quorum import JAVA, OURS, PerfLoad, PerfQuorum

__all__ = ["run"]

# Seconds after the first record; the first minute is for the just-in-time compiler.
WINDOW = "60-90"
WINDOW_VARIABLE = "KRAFTWIRE_BENCH_WINDOW"

THROUGHPUT = 5000
UNTHROTTLED = 1_000_000_000

# Kafka's histogram ends here; what took longer is counted in its last bucket.
JAVA_CAP_MS = 249.0

# At a rate that both sustain the true ratio is 1, and a window's ends are some milliseconds off.
RATE_FLOOR = 0.99

PROGRAMS = {"Kafka": JAVA, "kraftwire": OURS}

FREE_BYTES_MIN = 4_000_000_000

_JAVA_LINE = re.compile(r"Throughput .*: ([\d.]+), Latency .* ([\d.]+) p99 ([\d.]+) p999")


@dataclass(frozen=True, slots=True)
class Scenario:
    """The load for both programs."""

    nodes: int
    throughput: int
    record_size: int

    @property
    def name(self) -> str:
        """Its name in tables."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        rate = "unthrottled" if self.throughput == UNTHROTTLED else f"{self.throughput:,}/s"
        return f"{nodes}, {rate}, {self.record_size} B"


SCENARIOS = (
    Scenario(3, THROUGHPUT, 256),
    Scenario(3, THROUGHPUT, 4096),
    Scenario(1, THROUGHPUT, 256),
    Scenario(1, UNTHROTTLED, 256),
    Scenario(1, UNTHROTTLED, 4096),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What one program did in the window. `p99_ms` is None if it printed no latency."""

    records_per_second: float
    p99_ms: float | None

    def megabytes_per_second(self, scenario: Scenario) -> float:
        """Values alone. Units: 10^6 bytes."""
        return self.records_per_second * scenario.record_size / 1e6


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    begin, end = map(float, os.environ.get(WINDOW_VARIABLE, WINDOW).split("-"))
    programs = dict(PROGRAMS)
    if shutil.which("java") is None or not directory_of(KAFKA).is_dir():
        console.print("Kafka is skipped: no java, or the tests have not fetched its jars")
        del programs["Kafka"]
    rows, bars = [], []
    for scenario in SCENARIOS:
        results = {}
        for name, command in programs.items():
            try:
                results[name] = measure(scenario, command, begin, end)
            except (AssertionError, OSError, LookupError) as error:
                console.print(f"{scenario.name}: {name} failed: {error}", markup=False)
            rows.append(_row(scenario, name, results.get(name)))
            # The table follows a quarter of an hour later.
            console.print("  ".join(rows[-1]), markup=False)
        if len(results) == len(PROGRAMS):
            bars += _bars(scenario, results["kraftwire"], results["Kafka"])
    columns = ("", "program", "records/s", "MB/s", "p99 ms")
    print_table(f"Raft: committed from second {begin:g} to {end:g}", columns, rows)
    return print_bars("Raft: summary (against Kafka)", bars)


def _row(scenario: Scenario, name: str, result: Result | None) -> tuple[str, ...]:
    if result is None:
        return scenario.name, name, "failed", "-", "-"
    p99 = result.p99_ms
    latency = "-" if p99 is None else f"{p99:.0f}"
    if name == "Kafka" and p99 is not None and p99 >= JAVA_CAP_MS:
        latency = f"{JAVA_CAP_MS:.0f} or more"
    rate = f"{result.records_per_second:,.0f}"
    return scenario.name, name, rate, f"{result.megabytes_per_second(scenario):.2f}", latency


def _bars(scenario: Scenario, ours: Result, java: Result) -> list[Bar]:
    if java.records_per_second <= 0:
        # Unthrottled, its queue may have stopped it although the process still runs.
        console.print(f"{scenario.name}: Kafka committed nothing in the window, so no ratio")
        return []
    committed = ours.records_per_second / java.records_per_second
    bars = [Bar(f"{scenario.name}: committed", committed, RATE_FLOOR)]
    if scenario.throughput == UNTHROTTLED or not (ours.p99_ms and java.p99_ms):
        return bars
    if java.p99_ms < JAVA_CAP_MS:
        latency = ours.p99_ms / java.p99_ms
        bars.append(Bar(f"{scenario.name}: p99 latency", latency, 1.0, is_ceiling=True))
    return bars


def measure(scenario: Scenario, command: Sequence[str], begin: float, end: float) -> Result:
    """Run one program and observe it between two times. Units: seconds after its first record."""
    folder = CACHE / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    commands = [command] * scenario.nodes
    load = PerfLoad(scenario.throughput, scenario.record_size)
    with (
        tempfile.TemporaryDirectory(prefix="raft-", dir=folder) as name,
        PerfQuorum(Path(name), commands, load) as quorum,
    ):
        # The very first record is the LeaderChange.
        start = quorum.wait_for(2)
        _sleep_until(quorum, start + begin)
        first, first_time = quorum.high_watermark(), time.monotonic()
        # Unthrottled, Kafka's first answer may take longer than the window.
        _sleep_until(quorum, max(start + end, first_time + end - begin))
        last, last_time = quorum.high_watermark(), time.monotonic()
        lines = [line for at, line in quorum.lines if at < last_time]
        recent = [line for at, line in quorum.lines if first_time < at < last_time]
        quorum.stop()
    p99 = _java_p99(lines) if command is JAVA else _our_p99(recent)
    return Result((last - first) / (last_time - first_time), p99)


def _sleep_until(quorum: PerfQuorum, at: float) -> None:
    """Wait until a time, unless a process ends or the disk fills up."""
    while (left := at - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))
        quorum.ensure_running()
        if shutil.disk_usage(CACHE).free < FREE_BYTES_MIN:
            raise RuntimeError("the disk is nearly full: choose an earlier window")


def _java_p99(lines: Sequence[str]) -> float | None:
    """The p99 of the last line: Kafka's figures are those of the last 30 to 60 seconds."""
    found = [match for line in lines if (match := _JAVA_LINE.search(line))]
    return float(found[-1][2]) if found else None


def _our_p99(lines: Sequence[str]) -> float | None:
    """The p99 of all records in the lines, each of which covers about five seconds."""
    histogram: Counter[int] = Counter()
    for line in lines:
        if not line.startswith("{"):
            continue
        for latency, count in json.loads(line)["histogramMs"].items():
            histogram[int(latency)] += count
    left = 0.99 * histogram.total()
    for latency, count in sorted(histogram.items()):
        left -= count
        if left <= 0:
            return float(latency)
    return None
