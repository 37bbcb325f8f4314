"""Tables with the rows that a test wants, all others empty."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kraftwire.spark.stages import STAGES, Tables
from kraftwire.spark.tables import TABLES

__all__ = ["SECOND", "START", "derived", "given", "rows_of"]

# Nanoseconds.
SECOND = 10**9
START = 1_795_206_000 * SECOND

Rows = list[dict[str, Any]]

_PLACE: dict[str, Any] = {"file": "x.pcap", "position": 0}


def given(spark: SparkSession, **rows: Rows) -> Tables:
    """All known tables; columns that a row does not name are null, `time` follows `time_ns`."""
    return {
        name: _frame(spark, name, [_complete(name, row) for row in rows.get(name, [])])
        for name in TABLES
    }


def _complete(name: str, row: dict[str, Any]) -> dict[str, Any]:
    known = TABLES[name].arrow.names
    whole = {each: value for each, value in _PLACE.items() if each in known}
    if "time_ns" in row:
        whole["time"] = row["time_ns"] // 1000
    unknown = set(row) - set(known)
    assert not unknown, f"{name} has no {unknown}"
    return whole | row


def _frame(spark: SparkSession, name: str, rows: Rows) -> DataFrame:
    if not rows:
        return _empty(spark, name)
    return spark.createDataFrame(pa.Table.from_pylist(rows, TABLES[name].arrow))


@cache
def _empty(spark: SparkSession, name: str) -> DataFrame:
    """As in a run, Spark knows that a table is empty, and plans nothing for it."""
    return spark.createDataFrame([], TABLES[name].spark).limit(0)


def derived(spark: SparkSession, tables: Tables, *names: str) -> Tables:
    """The tables and the outputs of stages, each of which is made once, as in a run."""
    for name in names:
        tables = {**tables, name: _frame(spark, name, rows_of(STAGES[name].make(tables), name))}
    return tables


def rows_of(frame: DataFrame, table: str) -> Rows:
    """The rows of a stage's output, which must have the columns that the table says."""
    expected, found = TABLES[table].arrow, frame.toArrow()
    assert found.schema.names == expected.names
    assert [_plain(each) for each in found.schema.types] == list(expected.types)
    rows: Rows = found.to_pylist()
    return rows


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(kind) else kind
