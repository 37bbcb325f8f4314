"""Logs that would become many times their size are read in bounded memory (SEC-BOMB)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from kraftwire import engine
from kraftwire.records import BatchHeader, Record, build_batch
from tests.hostile.test_bombs import _RECORD, _batch
from tests.support.commands.memory import allowed, run

ZSTD = 4

# What one input may cost a worker, which holds columns beside the batch that they are made of.
_FREE = 64 * 1024 * 1024

# A process reads a small file, and then others; it prints by how much its peak has grown with each.
_PEAKS = """
import json, sys
from pathlib import Path
def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
small, *others = sys.argv[1:]
read(small)
before, grown = peak(), {}
for path in others:
    rows = read(path)
    grown[Path(path).parent.name] = (rows, peak() - before)
print(json.dumps(grown))
"""
# What a task of `format("kafka-log")` does, and one of `pipeline run --records`.
_READERS = {
    "kafka-log": """
import pyarrow as pa
from kraftwire.spark.sources.options import LogRows
from kraftwire.spark.tables import TABLES
source = LogRows({"path": "x"}, TABLES["records"].spark)
def read(path):
    count = 0
    for batch in source.rows(path, 0, None, None):
        count += len(batch)
        with pa.ipc.new_stream(pa.MockOutputStream(), batch.schema) as stream:
            stream.write_batch(batch)
    return count
""",
    "pipeline run": """
import os, tempfile
from kraftwire.spark.captures.selection import Selection
from kraftwire.spark.run.tasks import JobSettings, Unit, decode_unit
names = frozenset({"records", "batches", "metadata_records", "bad_input"})
def read(path):
    size = os.path.getsize(path)
    with tempfile.TemporaryDirectory() as folder:
        job = JobSettings(folder, Selection(), names)
        done = decode_unit((job, Unit("unit", size, path=path, start=0, end=size)))
    return sum(part.rows for part in done.parts if part.table == "records")
""",
}

# In the order of their limits: the peak of a process only grows.
DAMAGED = 40
FILES = {
    "too_many": (0, lambda: _batch(ZSTD, _RECORD * 2_300_000, 2_300_000) * 3),
    "too_long": (0, lambda: _batch(ZSTD, bytes(64 << 20), 1) * 3),
    "long": (4, lambda: b"".join(map(_long, range(4)))),
    "many": (640_000, lambda: b"".join(map(_many, range(10)))),
    "damaged": (DAMAGED * 5000, lambda: b"".join(map(_damaged, range(DAMAGED)))),
    "one": (1_000_000, lambda: _batch(0, _RECORD * 1_000_000, 1_000_000)),
    "tiny": (1_000_000, lambda: b"".join(map(_tiny, range(200)))),
}


def _long(number: int) -> bytes:
    """A batch whose unpacked size is just within the limit."""
    return build_batch(
        [Record(number, 0, None, bytes(11 << 20))], BatchHeader(compression="zstd")
    )


def _many(number: int) -> bytes:
    """A batch whose number of records is just within the limit."""
    return _batch(ZSTD, _RECORD * 64_000, 64_000, 64_000 * number)


def _damaged(number: int) -> bytes:
    """A batch with 5,000 records before the damage, and 8 MB of it."""
    return _batch(ZSTD, _RECORD * 5_000 + bytes(8_000_000), 5_001, 5_001 * number)


def _tiny(number: int) -> bytes:
    """Not compressed, but a row takes many times the seven bytes of its record."""
    return _batch(0, _RECORD * 5_000, 5_000, 5_000 * number)


def _segment(folder: Path, name: str, data: bytes) -> Path:
    path = folder / f"{name}-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", engine.available())
def test_memory_is_bounded(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both engines, by the source and by the pipeline, each in a separate process."""
    monkeypatch.setenv("KRAFTWIRE_PURE", "1" if name == engine.PYTHON else "")
    small = _segment(tmp_path, "small", _batch(ZSTD, _RECORD * 100, 100))
    paths = {each: _segment(tmp_path, each, made()) for each, (_, made) in FILES.items()}
    for reader, program in _READERS.items():
        out = tmp_path / reader
        found = run(program + _PEAKS, small, *paths.values(), out=out)
        assert found.code == 0, found.errors
        for folder, (rows, grown) in json.loads(out.read_text()).items():
            each = folder.removesuffix("-0")
            assert rows == FILES[each][0], f"{reader}: {each}"
            limit = allowed(paths[each].stat().st_size, _FREE)
            assert grown < limit, f"{reader}: {each} took {grown:,} bytes of {limit:,.0f}"
