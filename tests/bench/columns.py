"""Records by columns to Arrow, CRC checked, against kafka-python reading and aiokafka to Arrow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kraftwire.records.builder import BatchHeader, build_columns
from tests.bench.measure import contest
from tests.bench.report import Bar, print_bars, print_table, ratio

__all__ = ["run", "segment"]

OURS, PYTHON, AIO = "kraftwire", "kafka-python", "aiokafka to Arrow"
TIMESTAMP = 1_760_000_000_000
SEGMENT_RECORDS = 150_000
# A producer's default batch.size of 16 KiB holds about so many of these records.
BATCH_RECORDS = 130
# kafka-python needs further libraries for the others.
CODECS = ("none", "gzip")


def segment(records: int, compression: str = "none", batch_records: int = BATCH_RECORDS) -> bytes:
    """Keys of a few bytes and values of 20 to 200 bytes that compress by half."""
    source = random.Random(1)
    texts = [source.randbytes(100).hex().encode() for _ in range(500)]
    parts = []
    for base in range(0, records, batch_records):
        count = min(batch_records, records - base)
        parts.append(
            build_columns(
                [TIMESTAMP + base + source.randrange(5000) for _ in range(count)],
                [b"key-%d" % source.randrange(100_000) for _ in range(count)],
                [texts[source.randrange(500)][: source.randrange(20, 200)] for _ in range(count)],
                header=BatchHeader(base_offset=base, compression=compression),
            )
        )
    return b"".join(parts)


def _ours(data: bytes) -> int:
    from kraftwire.spark.columns import read_columns

    count = 0
    for table, problems in read_columns(data):
        assert not problems
        count += len(table)
    return count


def _kafka_python(data: bytes) -> int:
    """Only read: an object for each record."""
    from kafka.record import MemoryRecords

    return sum(1 for _ in _records(MemoryRecords(data)))


def _aiokafka(data: bytes) -> int:
    """Read into lists, and the lists into the same arrays as ours."""
    import pyarrow as pa
    from aiokafka.record.memory_records import MemoryRecords

    offsets, times, keys, values, headers = [], [], [], [], []
    for record in _records(MemoryRecords(data)):
        offsets.append(record.offset)
        times.append(record.timestamp)
        keys.append(record.key)
        values.append(record.value)
        headers.append(record.headers)
    binary, pairs = pa.binary(), pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    arrays = (
        pa.array(offsets, pa.int64()), pa.array(times, pa.int64()), pa.array(keys, binary),
        pa.array(values, binary), pa.array(headers, pairs),
    )  # fmt: skip
    return len(pa.table(list(arrays), list("otkvh")))


def _records(batches: Any) -> Iterator[Any]:
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        yield from batch


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    readers: dict[str, Callable[[bytes], int]] = {
        OURS: _ours,
        PYTHON: _kafka_python,
        AIO: _aiokafka,
    }
    rows, bars = [], []
    for compression in CODECS:
        data = segment(SEGMENT_RECORDS, compression)
        for name, read in readers.items():
            if read(data) != SEGMENT_RECORDS:
                raise AssertionError(f"{name} does not read every record")
        measured = contest({name: partial(read, data) for name, read in readers.items()})
        speeds = [
            f"{SEGMENT_RECORDS / best / 1e6:.2f}"
            for name in readers
            if (best := measured.best(name)) is not None
        ]
        ratios = [measured.ratio(OURS, name) for name in (PYTHON, AIO)]
        rows.append((compression, f"{len(data) / 1e6:.0f}", *speeds, *map(ratio, ratios)))
        if compression == "none":
            bars.append(Bar(f"records by columns / {PYTHON}", ratios[0], 3.5))
            bars.append(Bar(f"records by columns / {AIO}", ratios[1], 2))
    columns = ("batches", "MB", *readers, f"x {PYTHON}", f"x {AIO}")
    print_table("Records by columns: millions of records a CPU second", columns, rows)
    return print_bars("Records by columns: summary", bars)
