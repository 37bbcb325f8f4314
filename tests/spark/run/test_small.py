"""A small input is planned differently, with the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kraftwire.spark.run import small
from kraftwire.spark.run.derive import read_table
from kraftwire.spark.run.parts import create_missing
from kraftwire.spark.run.small import configured_for_few_rows, count_rows, is_small

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

_ADAPTIVE = "spark.sql.adaptive.enabled"


def test_the_sizes_of_all_files_count(tmp_path: Path) -> None:
    """A JVM without its optimizing compiler would take twice as long for a folder of much input."""
    for name in ("a", "b"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(150 * 1024 * 1024)
    assert is_small([str(tmp_path / "a")])
    assert not is_small([str(tmp_path)])
    assert not is_small([str(tmp_path / "?")])
    assert is_small([str(tmp_path / "none")])


def test_a_session_plans_for_few_rows_and_as_before_afterwards(
    spark_for_many_rows: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session belongs to its user: settings for a small input must not outlive the run."""
    spark = spark_for_many_rows
    create_missing(tmp_path, ["exchanges"])
    before = spark.conf.get(_ADAPTIVE)
    with configured_for_few_rows(spark, tmp_path) as has_few:
        assert has_few
        assert spark.conf.get(_ADAPTIVE) == "false"
    assert spark.conf.get(_ADAPTIVE) == before == "true"
    monkeypatch.setattr(small, "_ROWS_MAX", -1)
    with configured_for_few_rows(spark, tmp_path) as has_few:
        assert not has_few
        assert spark.conf.get(_ADAPTIVE) == before


def test_nothing_is_done_for_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Every job that reads nothing costs a tenth of a second."""
    create_missing(tmp_path, ["exchanges"])
    assert count_rows(tmp_path / "exchanges") == 0
    made = read_table(spark, tmp_path, "exchanges").groupBy("api_key").count()
    assert made.rdd.getNumPartitions() == 0
    assert made.collect() == []
