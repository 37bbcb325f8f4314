"""Reading a log segment with every CRC and every record, against kafka-dump-log."""

from __future__ import annotations

import math
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from kraftwire.records import Record
from kraftwire.records.builder import BatchHeader, build_batch
from tests.bench.engines import OURS, PURE
from tests.bench.measure import Run, run_process
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.kafka.maven import CACHE, KAFKA, directory_of

__all__ = ["run"]

SEGMENT_SIZE = 110_000_000
RECORD_SIZE = 350
# A producer's default batch.size of 16 KiB holds this many.
BATCH_RECORDS = 45
ROUNDS = 3

# Only reading is measured: no record is printed.
_PROGRAM = """
import mmap, sys
from kraftwire.records import read_batches
count = 0
with open(sys.argv[1], "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for batch in read_batches(data):
        batch.ensure_valid()
        {}
print(count)
"""
# Every record is walked through, or also becomes an object.
PROGRAMS = {
    "": _PROGRAM.format("batch.ensure_readable(); count += batch.count"),
    ", objects": _PROGRAM.format("count += len(batch.records())"),
}

# Floors of the whole process, with the engine in C and without.
_FLOORS = {"engine": 8.0, "pure": 3.0}


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    folder = CACHE / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    bars, rows = [], []
    for compression in ("none", "lz4"):
        large = _segment(folder / f"segment-{compression}", compression, SEGMENT_SIZE)
        empty = _segment(folder / f"segment-{compression}-start", compression, RECORD_SIZE)
        size = large.stat().st_size / 1e6
        peer_command = _dump_log()
        peer = None if peer_command is None else _measure(peer_command, large, empty)
        for name, program in PROGRAMS.items():
            for ours in OURS:
                found = _ours(ours, program, large, empty)
                ratios = (math.nan, math.nan)
                if peer is not None:
                    ratios = peer[0].wall_seconds / found[0].wall_seconds, peer[1] / found[1]
                rows.append(_row(f"{compression}, {ours}{name}", size, *found, *ratios))
                if compression == "none" and peer is not None:
                    title = f"{ours}: segment{name} / kafka-dump-log"
                    bars.append(Bar(f"{title}, whole process", ratios[0], _FLOORS[ours]))
                    if ours != PURE:
                        bars.append(Bar(f"{title}, without start-up", ratios[1], 4))
        if peer is not None:
            rows.append(_row(f"{compression}, kafka-dump-log", size, *peer, 1.0, 1.0))
    columns = (
        "segment", "MB", "wall s", "CPU s", "without start-up s", "MB/s", "peak MB",
        "x dump-log", "without start-up",
    )  # fmt: skip
    print_table("Segments: every CRC and every record", columns, rows)
    return print_bars("Segments: summary (wall time)", bars)


def _ours(name: str, program: str, large: Path, empty: Path) -> tuple[Run, float]:
    """A program of ours on one engine."""
    before = os.environ.get("KRAFTWIRE_PURE")
    os.environ["KRAFTWIRE_PURE"] = "1" if name == PURE else ""
    try:
        return _measure([sys.executable, "-c", program], large, empty)
    finally:
        if before is None:
            del os.environ["KRAFTWIRE_PURE"]
        else:
            os.environ["KRAFTWIRE_PURE"] = before


def _segment(folder: Path, compression: str, size: int) -> Path:
    """A segment file of at least some size; kept, since its content never changes."""
    path = folder / f"{0:020}.log"
    if not path.exists():
        folder.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            for batch in _batches(compression):
                file.write(batch)
                if file.warn() >= size:
                    break
        part.rename(path)
    return path


def _batches(compression: str) -> Iterator[bytes]:
    """Batches like a producer's, of records that are half noise and half text."""
    source = random.Random(1)
    offset = 0
    while True:
        records = [
            Record(offset + n, 1_760_000_000_000 + offset + n, None, _value(source))
            for n in range(BATCH_RECORDS)
        ]
        yield build_batch(records, BatchHeader(compression=compression, partition_leader_epoch=1))
        offset += BATCH_RECORDS


def _value(source: random.Random) -> bytes:
    size = source.randint(RECORD_SIZE - 100, RECORD_SIZE + 100)
    return source.randbytes(size // 2) + b"an order with a line of text " * (size // 58)


def _dump_log() -> list[str] | None:
    if shutil.which("java") is None or not directory_of(KAFKA).is_dir():
        console.print("kafka-dump-log is skipped: no java, or the tests have not fetched its jars")
        return None
    main_class = "org.apache.kafka.tools.DumpLogSegments"
    command = ["java", "-Xmx256m", "-cp", str(directory_of(KAFKA) / "*"), main_class]
    return [*command, "--deep-iteration", "--files"]


def _measure(command: list[str], large: Path, empty: Path) -> tuple[Run, float]:
    """The best run over the large segment, and its wall time minus that of an empty one."""
    best = _best(command, large)
    return best, best.wall_seconds - _best(command, empty).wall_seconds


def _best(command: list[str], path: Path) -> Run:
    runs = [run_process([*command, str(path)]) for _ in range(ROUNDS)]
    if any(run.exit_code for run in runs):
        raise RuntimeError(f"{' '.join(command)} {path} failed")
    return min(runs, key=lambda run: run.wall_seconds)


def _row(
    name: str, size: float, run: Run, seconds: float, *compared: float
) -> tuple[str, ...]:
    figures = (run.wall_seconds, run.cpu_seconds, seconds)
    ratios = ("-" if math.isnan(each) else f"{each:.1f}" for each in compared)
    peak = f"{run.peak_bytes / 1e6:,.0f}"
    return (
        name, f"{size:.0f}", *(f"{f:.2f}" for f in figures), f"{size / seconds:,.0f}", peak,
        *ratios,
    )  # fmt: skip
