"""The pipeline on Spark gives what it gives in one process."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import pyarrow as pa

from kraftwire.spark.run import LocalRunner, RunOptions, SparkRunner, run
from tests.spark.run.folders import busy, captures, everything, rows_of, tables_of


def _silent(_text: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize("with_stages", [False, True], ids=["base tables", "all tables"])
def test_tables_are_the_same_on_spark(with_stages: bool, spark: Any, tmp_path: Path) -> None:
    """The result must not show where the work was done, or that a connection was cut."""
    source = everything(tmp_path / "in")
    busy(source / "busy", times=10)
    run([str(source)], RunOptions(tmp_path / "here"), LocalRunner(), warn=_silent)
    options = RunOptions(tmp_path / "there", cut_bytes=300_000)
    if not with_stages:
        options = replace(options, tables=tuple(sorted(options.base)))
    outcome = run([str(source)], options, SparkRunner(spark), warn=_silent)
    assert outcome.unbalanced == []
    assert len(list((tmp_path / "there" / "frames").glob("unit-*-*-*.parquet"))) > 1
    assert tables_of(tmp_path / "there") == tables_of(tmp_path / "here")


def test_a_folder_may_have_any_name(spark: Any, tmp_path: Path) -> None:
    """Spark takes brackets, stars and question marks in a path for patterns."""
    source = captures(tmp_path / "in", "quorum")
    folder = tmp_path / "w [1] {a,b} ü#%41:?*$x"
    options = RunOptions(folder, tables=("raft_timeline", "partitions"))
    run([str(source)], options, SparkRunner(spark), warn=_silent)
    plain = replace(options, folder=tmp_path / "plain")
    run([str(source)], plain, SparkRunner(spark), warn=_silent)
    for table in ("raft_timeline", "partitions"):
        rows = rows_of(folder, table)
        assert rows
        assert rows == rows_of(tmp_path / "plain", table)


def test_cores_are_counted_when_they_are_needed() -> None:
    """Executors join after the session has begun; a run must not be cut for one alone."""
    context = SimpleNamespace(defaultParallelism=2)
    runner = SparkRunner(cast(Any, SimpleNamespace(sparkContext=context)))
    context.defaultParallelism = 100
    assert runner.cores == 100


def test_tasks_and_stages_have_workers_of_one_process(spark: Any) -> None:
    """A second process would load all libraries once more, which takes a second."""
    from pyspark.sql import functions as F

    @F.arrow_udf(returnType="long")
    def parent(ids: pa.Array) -> pa.Array:
        return pa.array([os.getppid()] * len(ids), pa.int64())

    of_stages = spark.range(1, numPartitions=1).select(parent("id")).first()[0]
    of_tasks = spark.sparkContext.parallelize([0], 1).map(lambda _: os.getppid()).first()
    assert of_stages == of_tasks
