"""What a rule is, and the form of its findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables import TABLES

ERROR, WARNING, INFO = "error", "warning", "info"


@dataclass(frozen=True, slots=True)
class AnomalyRule:
    """Looks for one thing in the tables `inputs`; `find` returns rows of the table anomalies."""

    id: str
    inputs: tuple[str, ...]
    find: Callable[[Tables], DataFrame]


def at(column: str) -> Column:
    """Convert a column of nanoseconds to a timestamp."""
    return F.timestamp_micros(F.expr(f"{column} div 1000"))


def counted(column: str, one: str, many: str) -> Column:
    """Return a count with its noun, in the singular for 1, else in the plural."""
    return F.when(F.col(column) == 1, F.lit(f"1 {one}")).otherwise(
        F.format_string(f"%,d {many}", column)
    )


def found(rows: DataFrame, rule: str, severity: str | Column, **columns: Column) -> DataFrame:
    """Return rows of the table anomalies; columns that are not given are null.

    `place` is a struct of file and position, if `rows` has one and neither is named;
    `cluster` is that of `rows`, if they have it.
    """
    if "place" in rows.columns:
        columns = {"file": F.col("place.file"), "position": F.col("place.position"), **columns}
    if "cluster" in rows.columns:
        columns["cluster"] = F.col("cluster")
    columns["rule"] = F.lit(rule)
    columns["severity"] = F.lit(severity) if isinstance(severity, str) else severity
    schema = TABLES["anomalies"].spark
    empty = F.lit(None)
    return rows.select(
        [columns.get(each.name, empty).cast(each.dataType).alias(each.name) for each in schema]
    )
