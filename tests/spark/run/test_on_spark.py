"""The pipeline on Spark gives what it gives in one process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.run import InProcess, OnSpark, RunOptions, run
from tests.spark.run.folders import busy, everything, tables_of


def _silent(_text: str) -> None:
    """Say nothing."""


def test_tables_are_the_same_on_spark(spark: Any, tmp_path: Path) -> None:
    """Where the work is done must not be seen in its result, nor that a connection was cut."""
    source = everything(tmp_path / "in")
    busy(source / "busy", times=10)
    run([str(source)], RunOptions(tmp_path / "here"), InProcess(), tell=_silent)
    options = RunOptions(tmp_path / "there", cut_bytes=300_000)
    outcome = run([str(source)], options, OnSpark(spark), tell=_silent)
    assert outcome.unbalanced == []
    assert len(list((tmp_path / "there" / "frames").glob("unit-*-c0001-*.parquet"))) > 1
    assert tables_of(tmp_path / "there") == tables_of(tmp_path / "here")


def test_cores_are_counted_when_they_are_needed() -> None:
    """Executors join after the session has begun; a run must not be cut for the first of them."""
    context = SimpleNamespace(defaultParallelism=2)
    runner = OnSpark(cast(Any, SimpleNamespace(sparkContext=context)))
    context.defaultParallelism = 100
    assert runner.cores == 100
