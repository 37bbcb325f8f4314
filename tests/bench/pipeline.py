"""Captures into tables, in CPU time: KRaft traffic, and a real Kafka under load against tshark.

The KRaft capture is of three controllers, repeated with other addresses and times. Tables are
made in this process, on one core.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.bench import inputs
from tests.bench.capture import CAPTURE, TSHARK_FIELDS
from tests.bench.measure import run_process
from tests.bench.report import Bar, console, print_bars, print_table

__all__ = ["run"]

_FLOOR_FRAMES, _FLOOR_RATIO, _FLOOR_ALL = 43_000, 2.5, 45


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    kraft = inputs.kraft()
    rows: list[tuple[str, ...]] = []
    frames, _ = _in_process("KRaft, exchanges", kraft, ("exchanges",), rows)
    _in_process("KRaft, all tables", kraft, None, rows)
    bars = [Bar("frames/s and core, exchanges of KRaft traffic", frames, _FLOOR_FRAMES, unit="")]
    if CAPTURE.exists():
        _, seconds = _in_process("load, exchanges", CAPTURE, ("exchanges",), rows)
        _, whole = _in_process("load, all tables", CAPTURE, None, rows)
        size = CAPTURE.stat().st_size / 1e6
        bars.append(Bar("MB/s and core, all tables of load", size / whole, _FLOOR_ALL, unit=""))
        if (peer := _tshark()) is not None:
            bars.append(Bar("exchanges of load / tshark -T fields", peer / seconds, _FLOOR_RATIO))
    else:
        console.print("load is skipped: record it with python -m tests.bench capture")
    columns = ("work", "CPU s", "MB/s", "frames/s")
    print_table("Captures into tables", columns, rows)
    return print_bars("Pipeline: summary (CPU time)", bars)


def _in_process(
    name: str, path: Path, tables: tuple[str, ...] | None, rows: list[tuple[str, ...]]
) -> tuple[float, float]:
    """Frames a second and seconds of the better of two rounds; adds a row."""
    from kraftwire.spark.captures import CAPTURE_TABLES, Series, Tables, bins, index_capture

    best = 0.0
    frames = 0
    for _ in range(2):
        began = time.process_time()
        series = Series([index_capture(path)])
        made = Tables(tables or CAPTURE_TABLES)
        count = 0
        for numbers in bins(series.talks, 32 * 1024 * 1024):
            for table, batch in made.bin(series, numbers):
                count += batch.num_rows if table == "exchanges" else 0
        for table, batch in made.take():
            count += batch.num_rows if table == "exchanges" else 0
        seconds = time.process_time() - began
        best = min(best or seconds, seconds)
        frames = 2 * count
    size = path.stat().st_size / 1e6
    rows.append((name, f"{best:.2f}", f"{size / best:.1f}", f"{frames / best:,.0f}"))
    return frames / best, best


def _tshark() -> float | None:
    tshark = shutil.which("tshark")
    if tshark is None:
        console.print("tshark is skipped: it is not installed")
        return None
    read = [tshark, "-r", str(CAPTURE), "-d", "tcp.port==9092,kafka", "-Y", "kafka"]
    fields = [word for name in TSHARK_FIELDS for word in ("-e", name)]
    return run_process([*read, "-T", "fields", *fields]).cpu_seconds
