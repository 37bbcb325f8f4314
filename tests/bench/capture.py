"""Lines and JSON lines of captures against tshark: large, small and mixed frames.

Each program reads a capture in one process and discards its output. CPU time counts, start-up
included. KRAFTWIRE_BENCH_TRAFFIC=mixed chooses among large, small and mixed.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from tests.bench import inputs
from tests.bench.inputs import Traffic
from tests.bench.measure import Run, run_process
from tests.bench.report import Bar, console, print_bars, print_table

__all__ = ["TSHARK_FIELDS", "run"]

ROUNDS = 2
PEAK_MAX = 300

LINES, JSON = "lines", "JSON lines"
OUTPUTS = {LINES: (), JSON: ("--format", "jsonl", "--records", "summary")}
ENGINES = {"engine": "0", "pure": "1"}

# What our lines say about a frame, as far as tshark can show it.
TSHARK_FIELDS = (
    *("frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport"),
    *("kafka.len", "kafka.api_key", "kafka.api_version", "kafka.correlation_id"),
)
_FIELDS = [word for name in TSHARK_FIELDS for word in ("-e", name)]
PEERS = {LINES: ("-T", "fields", *_FIELDS), JSON: ("-T", "json")}

# How many times as fast as tshark, by kind of traffic, engine and output.
FLOORS = {
    "large": {
        ("engine", LINES): 4.0, ("engine", JSON): 8.0, ("pure", LINES): 1.2, ("pure", JSON): 1.2,
    },
    "small": {("engine", LINES): 2.5, ("engine", JSON): 6.0},
    "mixed": {("engine", LINES): 2.2, ("engine", JSON): 4.0},
}  # fmt: skip
_MAKERS = {"large": inputs.load, "small": inputs.quorum, "mixed": inputs.clients}

# The exit codes of `kraftwire decode`: what clients send wrongly is a finding, and 3.
_READ = (0, 3)


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    wanted = os.environ.get("KRAFTWIRE_BENCH_TRAFFIC", ",".join(_MAKERS)).split(",")
    missed = []
    for name in wanted:
        if (traffic := _MAKERS[name]()) is not None:
            missed += _contest(traffic, FLOORS[name])
    return missed


def _contest(traffic: Traffic, floors: dict[tuple[str, str], float]) -> list[Bar]:
    ours = {" ".join(each): _best(*_ours(traffic, *each)) for each in floors}
    peers = {}
    if shutil.which("tshark"):
        peers = {output: _best(traffic.tshark(*words), {}) for output, words in PEERS.items()}
    else:
        console.print("tshark is skipped: it is not installed")
    named = {f"tshark for {output}": run for output, run in peers.items()}
    title = f"Capture: {traffic.name}, {traffic.megabytes:.0f} MB"
    columns = ("program", "wall s", "CPU s", "MB/s", "peak MB")
    rows = [_row(name, traffic.megabytes, run) for name, run in {**ours, **named}.items()]
    print_table(title, columns, rows)
    bars = [
        Bar(f"{engine} {output} / tshark", peers[output].cpu_seconds / run.cpu_seconds, floor)
        for ((engine, output), floor), run in zip(floors.items(), ours.values(), strict=True)
        if output in peers
    ]
    for name, run in ours.items():
        peak = run.peak_bytes / 1e6
        bars.append(Bar(f"peak memory, {name}", peak, PEAK_MAX, unit="MB", is_ceiling=True))
    return print_bars(f"{title} (CPU time)", bars)


def _ours(traffic: Traffic, engine: str, output: str) -> tuple[list[str], dict[str, str]]:
    """A command of ours, and its environment."""
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    command = [program, "decode", str(traffic.path), "--quiet", *OUTPUTS[output]]
    return command, {"KRAFTWIRE_PURE": ENGINES[engine]}


def _best(command: list[str], variables: dict[str, str]) -> Run:
    """The better of some runs."""
    runs = [run_process(command, variables=variables) for _ in range(ROUNDS)]
    for each in runs:
        if each.exit_code not in _READ:
            console.print(f"{' '.join(command)}: exit code {each.exit_code}")
    return min(runs, key=lambda each: each.cpu_seconds)


def _row(name: str, size: float, run: Run) -> tuple[str, ...]:
    seconds = (f"{run.wall_seconds:.1f}", f"{run.cpu_seconds:.2f}")
    return (name, *seconds, f"{size / run.cpu_seconds:.1f}", f"{run.peak_bytes / 1e6:,.0f}")
