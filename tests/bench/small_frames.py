"""Decoding a capture of small frames, line by line, as trees and byte by byte, against tshark.

The capture is the recorded quorum, repeated: a frame has 154 bytes on average. Start-up counts,
and so does kernel time. Bars are ratios of CPU time in one run.
"""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

from tests.bench.capture import PEAK_MAX, TSHARK_FIELDS
from tests.bench.inputs import kraft
from tests.bench.measure import Run, run_process
from tests.bench.report import Bar, console, print_bars, print_table

__all__ = ["run"]

_SIZE = 18_000_000
_PORTS = ("23001", "23002", "23003")

LINES = "kraftwire decode"
TREE = "kraftwire decode -v"
BYTES = "kraftwire decode --bytes"
TREE_JOBS = "kraftwire decode -v --jobs 2"
FIELDS = "tshark -T fields"
DETAILS = "tshark -V"

# Our command, the other program, and how many times as fast ours has to be.
_FLOORS = ((LINES, FIELDS, 1.6), (TREE, DETAILS, 1.2), (BYTES, DETAILS, 0.25))


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    capture = kraft(_SIZE)
    size = capture.stat().st_size / 1e6
    runs = {name: _measured(name, command) for name, command in _commands(capture).items()}
    print_table(
        f"Small frames: {size:.0f} MB of three controllers",
        ("program", "wall s", "CPU s", "MB/s", "peak MB"),
        [_row(name, size, run) for name, run in runs.items()],
    )
    bars = [
        Bar(f"{ours} / {peer}", runs[peer].cpu_seconds / runs[ours].cpu_seconds, floor)
        for ours, peer, floor in _FLOORS
        if peer in runs
    ]
    for name in (LINES, TREE, BYTES):
        peak = runs[name].peak_bytes / 1e6
        bars.append(Bar(f"peak memory of {name}", peak, PEAK_MAX, unit="MB", is_ceiling=True))
    return print_bars("Small frames: summary (CPU time)", bars)


def _commands(capture: Path) -> dict[str, list[str]]:
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    decode = [program, "decode", str(capture), "--quiet"]
    commands = {
        LINES: [*decode, "--jobs", "1"],
        TREE: [*decode, "-v", "--jobs", "1"],
        BYTES: [*decode, "--bytes", "--jobs", "1"],
        TREE_JOBS: [*decode, "-v", "--jobs", "2"],
    }
    tshark = shutil.which("tshark")
    if tshark is None:
        console.print("tshark is skipped: it is not installed")
        return commands
    read = [tshark, "-r", str(capture), "-Y", "kafka"]
    read += [word for port in _PORTS for word in ("-d", f"tcp.port=={port},kafka")]
    fields = [word for name in TSHARK_FIELDS for word in ("-e", name)]
    commands[FIELDS] = [*read, "-T", "fields", *fields]
    commands[DETAILS] = [*read, "-V"]
    return commands


def _measured(name: str, command: list[str]) -> Run:
    done = run_process(command)
    if done.exit_code:
        console.print(f"{name}: exit code {done.exit_code}")
    return done


def _row(name: str, size: float, run: Run) -> tuple[str, ...]:
    seconds = (f"{run.wall_seconds:.1f}", f"{run.cpu_seconds:.1f}")
    return (name, *seconds, f"{size / run.cpu_seconds:.1f}", f"{run.peak_bytes / 1e6:,.0f}")
