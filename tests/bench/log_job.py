"""A query over a log directory with `format("kafka-log")`: records per second and core.

CPU of the JVM and of all Python workers together, after a first run that is not counted.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.columns import segment
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.maven import CACHE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["run"]

SEGMENT_RECORDS = 150_000
SEGMENTS = 14
# The JVM compiles during the first rounds.
WARM_ROUNDS, ROUNDS = 2, 3
_ALL_ROUNDS = WARM_ROUNDS + ROUNDS
_OFFSET_BYTES = 8

# A short job does without the optimizing compiler; one that runs long is twice as fast with it.
SETTINGS = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}

# What is asked for, by name, with the columns that are read; none stands for all.
KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
QUERY = (
    "count(*)", "sum(length(key))", "sum(length(value))", "max(offset)", "max(timestamp)",
    "max(topic)", "max(partition)", "max(timestampType)",
)  # fmt: skip
QUERIES = {
    "columns of format(kafka)": (QUERY, KAFKA),
    "all columns": (QUERY, ()),
    "value": (("count(*)", "sum(length(value))"), ("value",)),
}


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if shutil.which("java") is None:
        console.print("log_job: there is no Java")
        return []
    from kraftwire.spark.session import local_session

    folder = _folder()
    spark = local_session("local[2]", SETTINGS)
    total = SEGMENT_RECORDS * SEGMENTS
    rows, bars = [], []
    for name, (query, names) in QUERIES.items():
        reader = spark.read.format("kafka-log")
        if names:
            reader = reader.schema(reader.load(str(folder)).select(*names).schema)
        taken = [_measured(reader.load(str(folder)), query, total) for _ in range(_ALL_ROUNDS)]
        best = min(taken[WARM_ROUNDS:])
        rows.append((name, f"{taken[0]:.1f}", f"{best:.1f}", f"{total / best / 1e6:.2f}"))
        if names == KAFKA:
            bars.append(Bar("kafka-log job, million records a CPU second", total / best / 1e6, 0.4))
    spark.stop()
    columns = ("query", "first CPU s", "best CPU s", "million records a CPU second")
    print_table(f"kafka-log: {total / 1e6:.1f} million records", columns, rows)
    return print_bars("kafka-log: summary", bars)


def _measured(frame: DataFrame, query: tuple[str, ...], total: int) -> float:
    """CPU seconds of a query."""
    before = _cpu_seconds()
    (row,) = frame.selectExpr(*query).collect()
    if row[0] != total:
        raise AssertionError(f"the job read {row[0]} of {total} records")
    return _cpu_seconds() - before


def _folder() -> Path:
    """A partition of several segments, made once."""
    folder = CACHE / "bench" / "log-job" / "orders-0"
    if folder.exists():
        return folder
    data = bytearray(segment(SEGMENT_RECORDS))
    partial = folder.with_name("orders-0.new")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for number in range(SEGMENTS):
        base = number * SEGMENT_RECORDS
        (partial / f"{base:020}.log").write_bytes(_moved(data, base))
    partial.rename(folder)
    return folder


def _moved(data: bytearray, base: int) -> bytes:
    """The same batches with other offsets, which their CRCs do not cover."""
    from kraftwire.records import read_batches

    moved = bytearray(data)
    for batch in read_batches(bytes(data)):
        at = batch.position
        moved[at : at + _OFFSET_BYTES] = (batch.base_offset + base).to_bytes(_OFFSET_BYTES)
    return bytes(moved)


def _cpu_seconds() -> float:
    """CPU time of this process and of all that descend from it, ended ones too."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    total, found = 0, {os.getpid()}
    while found:
        total += sum(ticks.get(pid, 0) for pid in found)
        found = {pid for pid, parent in parents.items() if parent in found}
    return total / os.sysconf("SC_CLK_TCK")
