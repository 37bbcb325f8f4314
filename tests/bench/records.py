"""Building a batch of 10,000 records and reading it back, against kafka-python and aiokafka.

Every contestant gets keys and values and adds offsets and timestamps itself. When reading, it
checks the CRC and makes an object of every record with its offset, timestamp, key, value, headers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kraftwire.records import Record, RecordBatch, read_batches
from kraftwire.records.builder import BatchBuilder, BatchHeader, build_columns
from tests.bench.corpus import load
from tests.bench.engines import OURS, enter
from tests.bench.measure import Contest, contest
from tests.bench.report import Bar, microseconds, print_bars, print_table, ratio

__all__ = ["run"]

# From columns of keys and values, which is our fastest way, and record by record as the peers do.
APPENDING = " appending"
PEER = "kafka-python"
PEERS = (PEER, "aiokafka (C)")
TIMESTAMP = 1_760_000_000_000
CODECS = {"none": 0, "gzip": 1}

Rows = list[tuple[bytes | None, bytes | None]]


@dataclass(frozen=True, slots=True)
class Contestant:
    """How one project builds a batch of rows and reads the rows of a batch."""

    build: Callable[[Rows, str], bytes]
    read: Callable[[bytes], list[Any]]


def _build_columns(rows: Rows, compression: str) -> bytes:
    keys, values = zip(*rows, strict=True)
    timestamps = range(TIMESTAMP, TIMESTAMP + len(rows))
    return build_columns(timestamps, keys, values, header=BatchHeader(compression=compression))


def _build_appending(rows: Rows, compression: str) -> bytes:
    builder = BatchBuilder(BatchHeader(compression=compression))
    for number, (key, value) in enumerate(rows):
        builder.append(TIMESTAMP + number, key, value)
    return builder.build()


def _read_ours(data: bytes) -> list[Record]:
    (batch,) = read_batches(data)
    assert isinstance(batch, RecordBatch)
    batch.ensure_valid()
    return batch.records()


def _contestant(builder: type, reader: type) -> Contestant:
    """kafka-python's API, which aiokafka has kept."""

    def build(rows: Rows, compression: str) -> bytes:
        batch = builder(2, CODECS[compression], 0, -1, -1, -1, 1 << 30)
        for number, (key, value) in enumerate(rows):
            batch.append(number, TIMESTAMP + number, key, value, [])
        return bytes(batch.build())

    def read(data: bytes) -> list[Any]:
        batch = reader(data)
        assert batch.validate_crc()
        return list(batch)

    return Contestant(build, read)


def _contestants() -> dict[str, Contestant]:
    from aiokafka.record import default_records as aiokafka
    from kafka.record import default_records as kafka_python

    return {
        **{name: Contestant(_build_columns, _read_ours) for name in OURS},
        **{name + APPENDING: Contestant(_build_appending, _read_ours) for name in OURS},
        PEER: _contestant(kafka_python.DefaultRecordBatchBuilder, kafka_python.DefaultRecordBatch),
        PEERS[1]: _contestant(
            aiokafka.DefaultRecordBatchBuilder, aiokafka.DefaultRecordBatch
        ),
    }


def _inputs() -> dict[str, Rows]:
    """The corpus's records, all of one size, and as many of varying sizes.

    Performance tests send equal sizes, for which a reader may have a short cut.
    """
    (item,) = (item for item in load() if item.name == "records_10000x100_none")
    equal = [(key, value) for _, _, key, value, *_ in _read_ours(item.data)]
    source = random.Random(1)
    varied: Rows = [(key, source.randbytes(source.randint(1, 200))) for key, _ in equal]
    return {"10,000 of equal size": equal, "10,000 of varied size": varied}


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    contestants = _contestants()
    lines, bars = [], []
    for label, rows in _inputs().items():
        for compression in CODECS:
            for operation, measured in _measure(contestants, rows, compression):
                best = [microseconds(measured.best(name)) for name in contestants]
                ratios = [ratio(measured.ratio(ours, name)) for ours in OURS for name in PEERS]
                lines.append((f"{label}, {compression}", operation, *best, *ratios))
                if compression == "none":
                    bars += _bars(f"{operation} {label}", operation, measured)
    compared = (f"{ours[0].upper()} x {name}" for ours in OURS for name in PEERS)
    columns = ("batch", "op", *contestants, *compared)
    print_table("Records: CPU microseconds, then how many times faster", columns, lines)
    return print_bars("Records: summary", bars)


# Floors against kafka-python, with the engine in C and without.
_FLOORS = {
    "engine": {"read": 12.0, "build": 12.0},
    "pure": {"read": 3.2, "build": 2.3},
}


def _bars(label: str, operation: str, measured: Contest) -> list[Bar]:
    bars = []
    for ours in OURS:
        floor = _FLOORS[ours][operation]
        bars.append(Bar(f"{ours}: {label} / {PEER}", measured.ratio(ours, PEER), floor))
        if ours == "engine":
            other = PEERS[1]
            bars.append(Bar(f"{ours}: {label} / {other}", measured.ratio(ours, other), 1))
    return bars


def _measure(
    contestants: dict[str, Contestant], rows: Rows, compression: str
) -> list[tuple[str, Contest]]:
    data = contestants[PEER].build(rows, compression)
    expected = [(n, TIMESTAMP + n, key, value) for n, (key, value) in enumerate(rows)]
    for name, each in contestants.items():
        enter(name)
        again = each.read(each.build(rows, compression))
        if not _seen(each.read(data)) == _seen(again) == expected:
            raise AssertionError(f"{name} does not return what was put in")
    builds = {n: lambda c=c: c.build(rows, compression) for n, c in contestants.items()}
    # Both of our ways of building share one way of reading.
    reads = {n: lambda c=c: c.read(data) for n, c in contestants.items() if APPENDING not in n}
    return [("build", contest(builds, enter)), ("read", contest(reads, enter))]


def _seen(records: list[Any]) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(r.offset, r.timestamp, r.key, r.value) for r in records]
