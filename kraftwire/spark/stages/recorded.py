"""Parts of the recorded time: what is before a hole says nothing of what is after it.

Owns the column `part`, by the rule of `kraftwire.capture.recorded`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType

from kraftwire.capture.recorded import REST_S, Recordings
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables.files import recorded_of

_SECOND_NS = 1_000_000_000


def with_part(rows: DataFrame, tables: Tables, time_ns: Column) -> DataFrame:
    """Add the number of holes before a row. Units: `time_ns` nanoseconds since the epoch."""
    spans = tables["files"].where("recorded is not null").agg(
        F.flatten(F.collect_list("recorded")).alias("spans")
    )
    ends = F.broadcast(spans.select(_ends_of_holes("spans").alias("_ends")))
    part = F.size(F.filter("_ends", lambda end: end <= time_ns))
    return rows.crossJoin(ends).withColumn("part", part).drop("_ends")


@F.arrow_udf(returnType=ArrayType(LongType()))
def _ends_of_holes(spans: pa.Array) -> pa.Array:
    return pa.array([_ends(each) for each in spans.to_pylist()], pa.list_(pa.int64()))


def _ends(spans: list[dict[str, Any]] | None) -> list[int]:
    recorded = recorded_of(spans or ())
    if not recorded.stretches:
        return []
    whole = recorded.stretches[0][0] / _SECOND_NS, recorded.stretches[-1][1] / _SECOND_NS
    # A double may be later than the first packet after the hole.
    holes = Recordings([recorded]).holes(*whole, REST_S)
    return [round((end - 1e-3) * _SECOND_NS) for _, end in holes]
