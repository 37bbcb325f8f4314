"""Columns that several stages group by."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

_SECOND_NS = 1_000_000_000


def topic_key() -> Column:
    """Return what identifies a topic, as `name`: the name, or the id if the name is unknown.

    Some requests carry names only and others ids only, so neither column alone will do.
    """
    return F.coalesce("topic", "topic_id").alias("name")


def evidence() -> Column:
    """Return file and position of the first row of a group, by `time_ns`, as the struct `place`."""
    return F.min_by(F.struct("file", "position"), "time_ns").alias("place")


def span() -> tuple[Column, Column, Column]:
    """Return start and end of the rows of a group, as `time_ns` and `end_ns`, and their evidence.
    """
    first, last = F.min("time_ns").alias("time_ns"), F.max("time_ns").alias("end_ns")
    return first, last, evidence()


def with_response_time(rows: DataFrame, exchanges: DataFrame) -> DataFrame:
    """Add `end_ns`, the time of the response of a row, or of its request if there is none.

    What a response reports is known only at its end: a Fetch may wait for half a second. Also adds
    `server`, the address of the server that responded.
    """
    latencies = exchanges.groupBy("file", "position").agg(
        F.max("latency_ns").alias("latency_ns"), F.max("server").alias("server")
    )
    took = F.coalesce("latency_ns", F.lit(0))
    return (
        rows.join(latencies, ["file", "position"], "left")
        .withColumn("end_ns", F.col("time_ns") + took)
        .drop("latency_ns")
    )


def with_session(rows: DataFrame, keys: tuple[str, ...], gap_s: float) -> DataFrame:
    """Add the column `session`, which numbers the sessions of each key.

    A session is a run of rows with gaps of at most `gap_s` seconds in `time_ns`.
    """
    order = Window.partitionBy(*keys).orderBy("time_ns")
    gap = F.col("time_ns") - F.lag("time_ns").over(order)
    starts = F.when(gap > int(gap_s * _SECOND_NS), 1).otherwise(0)
    past = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return rows.withColumn("_starts", starts).withColumn(
        "session", F.sum("_starts").over(past)
    ).drop("_starts")
