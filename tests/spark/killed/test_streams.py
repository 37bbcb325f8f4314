"""Streaming queries from a live quorum and from its files survive kill -9 of everything, twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

import pyarrow.parquet as pq

from kraftwire.testing import quorum
from tests.spark.killed.queries import NAMES, checkpoint, rows, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 240
# A record at short intervals, without any client.
LIVELY = {"metadata.max.idle.interval.ms": 200}


def newest(target: Path, name: str, kind: str) -> int:
    """The newest trigger that is planned (offsets) or done (commits); -1 if there is none."""
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(checkpoint(target, name) / kind)
        return max((int(each) for each in names if each.isdecimal()), default=-1)
    return -1


def is_in_the_middle(target: Path) -> bool:
    """Whether one of the queries has planned a trigger that is not done."""
    return any(
        newest(target, name, "offsets") > newest(target, name, "commits") for name in NAMES
    )


def has_done(target: Path, wanted: dict[str, int]) -> bool:
    """Whether every query has done its triggers, and has planned one at least.

    Spark refuses a checkpoint folder in which nothing is planned but a temporary file lies: a
    query that is killed at that moment starts again with another folder only.
    """
    return all(
        newest(target, name, "offsets") >= 0 and newest(target, name, "commits") >= wanted[name]
        for name in NAMES
    )


def run_and_kill(arguments: list[str], target: Path, log: Path, commits: int) -> None:
    """Let both queries do some triggers, and kill them in the middle of another."""
    wanted = {name: newest(target, name, "commits") + commits for name in NAMES}
    command = [sys.executable, "-m", "tests.spark.killed.queries", *arguments, str(target)]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE_S
        try:
            while not has_done(target, wanted) or not is_in_the_middle(target):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.02)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == -signal.SIGKILL, log.read_text()


def pieces(target: Path, name: str) -> Iterator[list[int]]:
    """The offsets in each file that a query has written, complete or not."""
    for path in rows(target, name).glob("*.parquet"):
        with contextlib.suppress(OSError, ValueError):
            yield pq.read_table(path, columns=["offset"])["offset"].to_pylist()


def test_every_record_is_there_once_after_kill_9_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In order of offset, from Fetch and from the segments alike, and with the same content."""
    target = tmp_path / "target"
    with quorum(nodes=1, properties=LIVELY) as nodes:
        (log,) = nodes.data_folder(1).rglob("__cluster_metadata-0")
        places = [nodes.bootstrap_controllers, str(log)]
        # In the middle of the very first trigger, and some triggers later.
        for attempt, commits in enumerate((0, 3)):
            run_and_kill(places, target, tmp_path / f"log-{attempt}", commits)
        ends = {name: newest(target, name, "offsets") for name in NAMES}
        last = [
            start(spark, name, place, target, is_endless=False)
            for name, place in zip(NAMES, places, strict=True)
        ]
        assert all(query.awaitTermination(PATIENCE_S) for query in last)
    found = {}
    for name in NAMES:
        assert newest(target, name, "commits") >= ends[name] >= 2
        frame = spark.read.parquet(str(rows(target, name)))
        cells = frame.select("offset", "epoch", "type", "version", "data").collect()
        found[name] = sorted(map(tuple, cells))
        assert [each[0] for each in found[name]] == list(range(len(cells)))
        for offsets in pieces(target, name):
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    count = min(map(len, found.values()))
    assert count > 20
    assert found["quorum"][:count] == found["files"][:count]
