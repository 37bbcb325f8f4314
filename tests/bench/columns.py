"""Records by columns to Arrow, CRC checked, on both engines.

Against kafka-python and Kafka's Java client, which only read, and aiokafka, whose records become
the same Arrow arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kraftwire.records.builder import BatchHeader, build_columns
from tests.bench.engines import OURS, enter
from tests.bench.java_reader import JavaReader, java_reader
from tests.bench.measure import Contest, contest
from tests.bench.report import Bar, print_bars, print_table, ratio

__all__ = ["run", "segment"]

PYTHON, AIO = "kafka-python", "aiokafka"
# With keys and values as its consumer returns them; and not copied, which gives no table.
JAVA, VIEWS = "Java", "Java views"
TIMESTAMP = 1_760_000_000_000
SEGMENT_RECORDS = 150_000
# A producer's default batch.size of 16 KiB holds about this many of these records.
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
    """It only reads: an object for each record."""
    from kafka.record import MemoryRecords

    return sum(1 for _ in _records(MemoryRecords(data)))


def _aiokafka(data: bytes) -> int:
    """It reads into lists, which become the same arrays as ours."""
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


# Times as fast as each peer, millions of records a CPU second: floors.
_FLOORS: dict[str, dict[str, float]] = {
    "engine": {PYTHON: 3.5, AIO: 2, JAVA: 1, "speed": 10},
    "pure": {PYTHON: 1, "speed": 0.3},
}


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    rows, bars = [], []
    for compression in CODECS:
        data = segment(SEGMENT_RECORDS, compression)
        with java_reader(data) as java:
            measured = _measure(data, java)
        best = {name: min(taken) for name, taken in measured.rounds.items()}
        peers = [name for name in (PYTHON, AIO, JAVA, VIEWS) if name in best]
        ratios = {ours: {peer: measured.ratio(ours, peer) for peer in peers} for ours in OURS}
        rows.append(
            (
                compression,
                f"{len(data) / 1e6:.0f}",
                *(f"{_speed(taken):.2f}" for taken in best.values()),
                *(ratio(ratios[ours][peer]) for ours in OURS for peer in peers if peer != VIEWS),
            )
        )
        if compression == "none":
            for ours in OURS:
                floors = _FLOORS[ours]
                bars += [
                    Bar(f"{ours}: columns / {peer}", ratios[ours][peer], floors[peer])
                    for peer in peers
                    if peer in floors
                ]
                speed = _speed(best[ours])
                bars.append(Bar(f"{ours}: million a CPU second", speed, floors["speed"], unit=""))
    compared = (f"{ours[0].upper()} x {peer}" for ours in OURS for peer in peers if peer != VIEWS)
    columns = ("batches", "MB", *best, *compared)
    print_table("Records by columns: millions of records a CPU second", columns, rows)
    return print_bars("Records by columns: summary", bars)


def _speed(seconds: float) -> float:
    return SEGMENT_RECORDS / seconds / 1e6


def _measure(data: bytes, java: JavaReader | None) -> Contest:
    """All contestants alternately; Java's rounds are interleaved, and it times them itself."""
    readers: dict[str, Callable[[bytes], int]] = {
        **dict.fromkeys(OURS, _ours),
        PYTHON: _kafka_python,
        AIO: _aiokafka,
    }
    for name, read in readers.items():
        enter(name)
        if read(data) != SEGMENT_RECORDS:
            raise AssertionError(f"{name} does not read every record")
    calls = {name: partial(read, data) for name, read in readers.items()}
    if java is None:
        return contest(calls, enter)
    if java.records != SEGMENT_RECORDS:
        raise AssertionError("Java does not read every record")
    return contest(calls, enter, {JAVA: java.arrays, VIEWS: java.views})
