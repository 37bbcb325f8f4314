"""Runs one rule over tables that a test writes."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from kraftwire.spark.stages.anomalies import RULES
from tests.spark.stages.tables import given, rows_of

__all__ = ["find"]


def find(spark: SparkSession, rule: str, **rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that a rule finds, in order of time."""
    one = next(each for each in RULES if each.id == rule)
    found = rows_of(one.find(given(spark, **rows)), "anomalies")
    assert all(row["rule"] == rule for row in found)
    return sorted(found, key=lambda row: row["time"])
