"""What fails on Spark is reported in one line, with the first error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.captures import Selection
from kraftwire.spark.run import LocalRunner, RunOptions, SparkRunner, run
from kraftwire.spark.run.derive import derive
from kraftwire.spark.run.failure import JobError
from kraftwire.spark.run.tasks import JobSettings, Unit
from kraftwire.spark.stages import Stage, Tables, known
from tests.spark.run.folders import captures


def _by_name(tables: Tables) -> DataFrame:
    return tables["frames"].select("no_such_column")


def _by_table(tables: Tables) -> DataFrame:
    return tables["records"]


def _in_a_worker(tables: Tables) -> DataFrame:
    def broken(_size: int) -> int:
        raise ValueError("no sum of these")

    return tables["frames"].select(F.udf(broken, "int", useArrow=False)("size"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_by_name, "no_such_column"),
        (_by_table, "KeyError: 'records'"),
        (_in_a_worker, "ValueError: no sum of these"),
    ],
)
def test_a_stage_of_a_user_that_fails(
    make: Callable[[Tables], DataFrame],
    words: str,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may fail while it is planned or in a task; the tables of inputs stay."""
    source, out = captures(tmp_path / "in", "sasl"), tmp_path / "out"
    outcome = run([str(source)], RunOptions(out), LocalRunner(), warn=print)
    monkeypatch.setitem(known._known, "broken", Stage("broken", ("frames",), make))
    with pytest.raises(JobError) as caught:
        derive(spark, out, {"broken"})
    assert str(caught.value).startswith("the stage broken failed: ")
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert outcome.rows["frames"] > 0
    assert not (out / "broken").exists()


def _work(number: int) -> tuple[JobSettings, Unit]:
    return JobSettings("", Selection(), frozenset()), Unit(f"unit {number}", size=number)


def _broken(_work: Any) -> Any:
    raise MemoryError("of which there is none")


def test_a_task_that_fails(spark: Any) -> None:
    """The line has neither Java's stack nor Python's."""
    with pytest.raises(JobError, match="a task of Spark failed: MemoryError: of which") as caught:
        SparkRunner(spark).map(_broken, [_work(1), _work(2)])
    assert len(str(caught.value).splitlines()) == 1
