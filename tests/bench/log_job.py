"""A query over a log directory with `format("kafka-log")`: records per second and core.

CPU of the JVM and of all Python workers together, after a first run that is not counted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.columns import segment
from tests.bench.report import Bar, console, print_bars, print_table
from tests.bench.tree import Tree
from tests.support.kafka.maven import CACHE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["query_seconds", "run"]

SEGMENT_RECORDS = 150_000
SEGMENTS = 14
# The JVM compiles during the first rounds.
WARM_ROUNDS, ROUNDS = 2, 3
_ALL_ROUNDS = WARM_ROUNDS + ROUNDS
_OFFSET_BYTES = 8

SETTINGS = {"spark.ui.showConsoleProgress": "false"}
# Without the JVM's optimizing compiler, for jobs of seconds, and with it.
SESSIONS = {"short": True, "long": False}

# The queries by name, with the columns that they read; none stands for all.
KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
QUERY = (
    "count(*)", "sum(length(key))", "sum(length(value))", "max(offset)", "max(timestamp)",
    "max(topic)", "max(partition)", "max(timestampType)",
)  # fmt: skip
FIRST = "columns of format(kafka)"
QUERIES = {
    FIRST: (QUERY, KAFKA),
    "all columns": (QUERY, ()),
    "value": (("count(*)", "sum(length(value))"), ("value",)),
}


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if shutil.which("java") is None:
        console.print("log_job is skipped: there is no Java")
        return []
    total = SEGMENT_RECORDS * SEGMENTS
    _folder()
    rows, bars = [], []
    for session in SESSIONS:
        # A JVM keeps its flags for as long as the process of its driver lives.
        command = [sys.executable, "-m", "tests.bench.log_job", session]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for name, taken in json.loads(said.splitlines()[-1]).items():
            best = min(taken[WARM_ROUNDS:])
            rate = total / best / 1e6
            load = f"{os.getloadavg()[0]:.1f}"
            rows.append(
                (f"{name}, {session}", f"{taken[0]:.1f}", f"{best:.1f}", f"{rate:.2f}", load)
            )
            if name == FIRST and session == "long":
                bars.append(Bar("kafka-log job, million records a CPU second", rate, 0.4))
    columns = ("query, session", "first CPU s", "best CPU s", "million a CPU second", "load")
    print_table(f"kafka-log: {total / 1e6:.1f} million records", columns, rows)
    return print_bars("kafka-log: summary", bars)


def _session(is_short: bool) -> dict[str, list[float]]:
    """CPU seconds of every round of every query in one session."""
    from kraftwire.spark.session import local_session

    folder = str(_folder())
    spark = local_session("local[2]", SETTINGS, is_short=is_short)
    taken = {}
    for name, (query, names) in QUERIES.items():
        reader = spark.read.format("kafka-log")
        if names:
            reader = reader.schema(reader.load(folder).select(*names).schema)
        frame = reader.load(folder)
        total = SEGMENT_RECORDS * SEGMENTS
        taken[name] = [_measured(frame, query, total) for _ in range(_ALL_ROUNDS)]
    spark.stop()
    return taken


def query_seconds(frame: DataFrame, total: int) -> float:
    """CPU seconds of a query that reads every column of `format("kafka")` of all records."""
    return _measured(frame, QUERY, total)


def _measured(frame: DataFrame, query: tuple[str, ...], total: int) -> float:
    """CPU seconds of a query."""
    with Tree() as tree:
        tree.look()
        before = tree.cpu_seconds()
        (row,) = frame.selectExpr(*query).collect()
        tree.look()
    if row[0] != total:
        raise AssertionError(f"the job read {row[0]} of {total} records")
    return tree.cpu_seconds() - before


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


if __name__ == "__main__":
    print(json.dumps(_session(SESSIONS[sys.argv[1]])))
