"""Decoding captures with both engines, against tshark, and by two jobs: large and small frames.

Large frames are those of a real Kafka under load, recorded once by `tools.record_load` and kept;
small ones are a quorum's. Each program reads a capture in one process and discards its output.
CPU time counts, start-up included: every program uses one core, so on an idle machine it is the
wall time as well.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import shared_decode
from tests.bench.measure import Run, run_process
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.maven import CACHE

__all__ = ["run"]

CAPTURE = CACHE / "bench" / "load.pcap"
_SMALL_GB = "0.018"
ROUNDS = 2
PEAK_MAX = 300

LINES = "lines"
SUMMARY = "JSON lines, summary"
FULL = "JSON lines, full"
FIELDS = "tshark -T fields"
JSON = "tshark -T json"

# Our kinds of output, and their options.
OUTPUTS = {
    LINES: (),
    SUMMARY: ("--format", "jsonl", "--records", "summary"),
    FULL: ("--format", "jsonl", "--records", "full"),
}
ENGINES = {"engine": "0", "pure": "1"}

# What our lines say about a frame, as far as tshark can show it.
TSHARK_FIELDS = (
    *("frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport"),
    *("kafka.len", "kafka.api_key", "kafka.api_version", "kafka.correlation_id"),
)

# The exit code of `kraftwire decode` if every byte was decoded.
_CLEAN = 0


@dataclass(frozen=True, slots=True)
class Frames:
    """A capture, the ports of its servers, and the bars for its ratios.

    `bars` are floor and goal by engine and kind of output.
    """

    name: str
    path: Path
    ports: tuple[int, ...]
    bars: dict[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A program with its arguments, the capture included, and its environment variables."""

    name: str
    command: list[str]
    variables: dict[str, str] = field(default_factory=dict)


_LARGE_BARS = {
    ("engine", LINES): (3.5, 5.0),
    ("pure", LINES): (2.5, 3.0),
    ("engine", SUMMARY): (5.0, 10.0),
    ("pure", SUMMARY): (4.0, 5.0),
}
_SMALL_BARS = {("engine", LINES): (2.0, 3.0), ("pure", LINES): (1.3, 2.0)}


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    missed = []
    for frames in _captures():
        missed += _contest(frames)
        missed += shared_decode.contest(frames.name, frames.path, ENGINES)
    return missed


def _captures() -> Iterator[Frames]:
    if CAPTURE.exists() or _record():
        yield Frames("large frames", CAPTURE, (9092,), _LARGE_BARS)
    if (small := _small()) is not None:
        yield Frames("small frames", small, (23001, 23002, 23003), _SMALL_BARS)


def _small() -> Path | None:
    """A capture of a quorum, made once; in a separate process, as numpy is large."""
    printed = CAPTURE.with_name("kraft.txt")
    printed.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.bench.inputs", "kraft", _SMALL_GB]
    if run_process(command, output=printed).exit_code:
        console.print("small frames are skipped: python -m tests.bench.inputs failed")
        return None
    return Path(printed.read_text().strip())


def _contest(frames: Frames) -> list[Bar]:
    runs = _measure(_contestants(frames))
    size = frames.path.stat().st_size / 1e6
    columns = ("program", "wall s", "CPU s", "MB/s", "peak MB")
    print_table(
        f"Capture: {frames.name}, {size:.0f} MB",
        columns,
        [_row(name, size, run) for name, run in runs.items()],
    )
    return print_bars(f"Capture: {frames.name} (CPU time)", _bars(frames, runs))


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


def _contestants(frames: Frames) -> list[Contestant]:
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    ours = [
        Contestant(
            f"{engine} {output}",
            [program, "decode", str(frames.path), "--jobs", "1", *options],
            {"KRAFTWIRE_PURE": pure},
        )
        for output, options in OUTPUTS.items()
        for engine, pure in ENGINES.items()
    ]
    tshark = shutil.which("tshark")
    if tshark is None:
        console.print("tshark is skipped: it is not installed")
        return ours
    # Without the ports it would take the capture for another protocol.
    ports = [word for port in frames.ports for word in ("-d", f"tcp.port=={port},kafka")]
    read = [tshark, "-r", str(frames.path), *ports, "-Y", "kafka"]
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
            done = run_process(each.command, variables=each.variables)
            if done.exit_code != _CLEAN:
                console.print(f"{each.name}: exit code {done.exit_code}")
            if each.name not in best or done.cpu_seconds < best[each.name].cpu_seconds:
                best[each.name] = done
    return best


def _row(name: str, size: float, run: Run) -> tuple[str, ...]:
    seconds = (f"{run.wall_seconds:.1f}", f"{run.cpu_seconds:.1f}")
    return (name, *seconds, f"{size / run.cpu_seconds:.1f}", f"{run.peak_bytes / 1e6:,.0f}")


def _bars(frames: Frames, runs: dict[str, Run]) -> list[Bar]:
    bars = []
    for (engine, output), marks in frames.bars.items():
        peer = FIELDS if output == LINES else JSON
        if peer in runs:
            ratio = runs[peer].cpu_seconds / runs[f"{engine} {output}"].cpu_seconds
            bars.append(Bar(f"{engine} {output} / {peer}", ratio, *marks))
    for engine in ENGINES:
        for output in OUTPUTS:
            name = f"{engine} {output}"
            peak = runs[name].peak_bytes / 1e6
            bars.append(Bar(f"peak memory, {name}", peak, PEAK_MAX, unit="MB", is_ceiling=True))
    return bars
