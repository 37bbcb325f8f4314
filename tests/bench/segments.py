"""Reading a log segment with every CRC and every record, against kafka-dump-log."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from kraftwire.records import Record
from kraftwire.records.builder import BatchHeader, build_batch
from tests.bench.measure import Run, run_process
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.maven import CACHE, KAFKA

__all__ = ["run"]

SEGMENT_SIZE = 110_000_000
RECORD_SIZE = 350
# A producer's default batch.size of 16 KiB holds so many.
BATCH_RECORDS = 45
ROUNDS = 3

# Reading is all that happens: nothing is printed, every record becomes an object.
READ = """
import sys
from pathlib import Path
from kraftwire.records import read_batches
count = 0
for batch in read_batches(Path(sys.argv[1]).read_bytes()):
    batch.ensure_valid()
    count += len(batch.records())
print(count)
"""


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    folder = CACHE / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    bars, rows = [], []
    for compression in ("none", "lz4"):
        large = _segment(folder / f"segment-{compression}", compression, SEGMENT_SIZE)
        empty = _segment(folder / f"segment-{compression}-start", compression, RECORD_SIZE)
        size = large.stat().st_size / 1e6
        ours = _measure([sys.executable, "-c", READ], large, empty)
        rows.append(_row(f"{compression}, kraftwire", size, *ours))
        peer_command = _dump_log()
        if peer_command is None:
            continue
        peer = _measure(peer_command, large, empty)
        rows.append(_row(f"{compression}, kafka-dump-log", size, *peer))
        if compression == "none":
            whole = peer[0].wall_seconds / ours[0].wall_seconds
            bars.append(Bar("segment / kafka-dump-log, whole process", whole, 4))
            bars.append(Bar("segment / kafka-dump-log, without start-up", peer[1] / ours[1], 4))
    columns = ("segment", "MB", "wall s", "CPU s", "without start-up s", "MB/s", "peak MB")
    print_table("Segments: every CRC and every record", columns, rows)
    return print_bars("Segments: summary (wall time)", bars)


def _segment(folder: Path, compression: str, size: int) -> Path:
    """A segment file of at least some size; kept, since its content never changes."""
    path = folder / f"{0:020}.log"
    if not path.exists():
        folder.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            for batch in _batches(compression):
                file.write(batch)
                if file.tell() >= size:
                    break
        part.rename(path)
    return path


def _batches(compression: str) -> Iterator[bytes]:
    """Batches as a producer's, of records that are half noise and half text."""
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
    if shutil.which("java") is None or not KAFKA.directory.is_dir():
        console.print("kafka-dump-log is skipped: no java, or the tests have not fetched its jars")
        return None
    main_class = "org.apache.kafka.tools.DumpLogSegments"
    command = ["java", "-Xmx256m", "-cp", str(KAFKA.directory / "*"), main_class]
    return [*command, "--deep-iteration", "--files"]


def _measure(command: list[str], large: Path, empty: Path) -> tuple[Run, float]:
    """The best run over the large segment, and its wall time without that over an empty one."""
    best = _best(command, large)
    return best, best.wall_seconds - _best(command, empty).wall_seconds


def _best(command: list[str], path: Path) -> Run:
    runs = [run_process([*command, str(path)]) for _ in range(ROUNDS)]
    if any(run.exit_code for run in runs):
        raise RuntimeError(f"{' '.join(command)} {path} failed")
    return min(runs, key=lambda run: run.wall_seconds)


def _row(name: str, size: float, run: Run, seconds: float) -> tuple[str, ...]:
    figures = (run.wall_seconds, run.cpu_seconds, seconds)
    peak = f"{run.peak_bytes / 1e6:,.0f}"
    return (name, f"{size:.0f}", *(f"{f:.2f}" for f in figures), f"{size / seconds:,.0f}", peak)
