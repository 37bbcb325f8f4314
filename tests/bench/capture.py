"""Decoding a capture of a real Kafka under load, against tshark.

The capture is recorded once by `tools.record_load` and kept. Each program reads it in one process
and writes to nowhere. CPU time counts, with the start-up and everything: both programs use one
core, so on an idle machine it is the wall time as well.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import Run, run_process
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.maven import CACHE

__all__ = ["run"]

CAPTURE = CACHE / "bench" / "load.pcap"
ROUNDS = 2
PEAK_MAX = 300

LINES = "kraftwire decode"
SUMMARY = "kraftwire decode --format jsonl --records summary"
FULL = "kraftwire decode --format jsonl --records full"
FIELDS = "tshark -T fields"
JSON = "tshark -T json"

# What a line of ours says about a frame, as far as tshark can tell.
TSHARK_FIELDS = (
    *("frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport"),
    *("kafka.len", "kafka.api_key", "kafka.api_version", "kafka.correlation_id"),
)

# What `kraftwire decode` returns if every byte was decoded.
_CLEAN = 0


@dataclass(frozen=True, slots=True)
class Contestant:
    """A program and its arguments, the capture included."""

    name: str
    command: list[str]


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if not CAPTURE.exists() and not _record():
        return []
    runs = _measure(_contestants())
    size = CAPTURE.stat().st_size / 1e6
    columns = ("program", "wall s", "CPU s", "MB/s", "peak MB")
    print_table(
        f"Capture: {size:.0f} MB of a real Kafka under load, packets of 1500 bytes",
        columns,
        [_row(name, size, run) for name, run in runs.items()],
    )
    return print_bars("Capture: summary (CPU time)", _bars(runs))


def _record() -> bool:
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        console.print(f"capture is skipped: recording one needs {', '.join(missing)}")
        return False
    console.print("recording a capture of a real Kafka under load; this is done once")
    CAPTURE.parent.mkdir(parents=True, exist_ok=True)
    printed = CAPTURE.with_suffix(".txt")
    command = [sys.executable, "-m", "tools.record_load", str(CAPTURE)]
    if run_process(command, output=printed).exit_code:
        console.print("capture is skipped: python -m tools.record_load failed")
        return False
    console.print(printed.read_text())
    return True


def _contestants() -> list[Contestant]:
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    decode = [program, "decode", str(CAPTURE)]
    ours = [
        Contestant(LINES, decode),
        Contestant(SUMMARY, [*decode, "--format", "jsonl", "--records", "summary"]),
        Contestant(FULL, [*decode, "--format", "jsonl", "--records", "full"]),
    ]
    tshark = shutil.which("tshark")
    if tshark is None:
        console.print("tshark is skipped: it is not installed")
        return ours
    # Without the port it would take the capture for something else.
    read = [tshark, "-r", str(CAPTURE), "-d", "tcp.port==9092,kafka", "-Y", "kafka"]
    fields = [word for name in TSHARK_FIELDS for word in ("-e", name)]
    return [
        *ours,
        Contestant(FIELDS, [*read, "-T", "fields", *fields]),
        Contestant(JSON, [*read, "-T", "json"]),
    ]


def _measure(contestants: list[Contestant]) -> dict[str, Run]:
    best: dict[str, Run] = {}
    for _ in range(ROUNDS):
        for each in contestants:
            done = run_process(each.command)
            if done.exit_code != _CLEAN:
                console.print(f"{each.name}: exit code {done.exit_code}")
            if each.name not in best or done.cpu_seconds < best[each.name].cpu_seconds:
                best[each.name] = done
    return best


def _row(name: str, size: float, run: Run) -> tuple[str, ...]:
    seconds = (f"{run.wall_seconds:.1f}", f"{run.cpu_seconds:.1f}")
    return (name, *seconds, f"{size / run.cpu_seconds:.1f}", f"{run.peak_bytes / 1e6:,.0f}")


def _bars(runs: dict[str, Run]) -> list[Bar]:
    bars = []
    for ours, peer, floor in ((LINES, FIELDS, 8), (SUMMARY, JSON, 2)):
        if peer in runs:
            ratio = runs[peer].cpu_seconds / runs[ours].cpu_seconds
            bars.append(Bar(f"{ours} / {peer}", ratio, floor))
    for name in (LINES, SUMMARY, FULL):
        peak = runs[name].peak_bytes / 1e6
        bars.append(Bar(f"peak memory of {name}", peak, PEAK_MAX, unit="MB", is_ceiling=True))
    return bars
