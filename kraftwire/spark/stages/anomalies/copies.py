"""Traffic that was captured more than once, such as at both ends of a connection."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.anomalies.rule import WARNING, AnomalyRule, counted, found
from kraftwire.spark.stages.stage import Tables

# The largest clock difference between capturing hosts.
_CLOCKS_S = 60

# Not every capture shows who opened a connection, so its ends are sorted by name.
_ENDS = (F.least, F.greatest)


def _ends() -> list[Column]:
    return [end("client", "server").alias(name) for end, name in zip(_ENDS, "ab", strict=True)]


def _captured_twice(tables: Tables) -> DataFrame:
    """The same exchanges, by connection, API and correlation id, in two recordings."""
    known = tables["connections"].where("protocol = 'kafka'")
    one = known.select(
        *_ends(), F.struct("file", "position").alias("place"), "first_time", "last_time", "frames"
    )
    other = one.select("a", "b", *(F.col(each).alias(f"other_{each}") for each in one.columns[2:]))
    slack = F.expr(f"interval {_CLOCKS_S} seconds")
    pairs = one.join(other, ["a", "b"]).where(
        (F.col("place.file") < F.col("other_place.file"))
        & (F.col("first_time") <= F.col("other_last_time") + slack)
        & (F.col("other_first_time") <= F.col("last_time") + slack)
    )
    twice = _copies(tables["exchanges"], pairs)
    sums = (
        pairs.join(twice, ["a", "b"])
        .groupBy(F.col("place.file").alias("file"), F.col("other_place.file").alias("other"))
        .agg(
            F.sum("copies").alias("copies"),
            F.min("time").alias("time"),
            F.max("end_time").alias("end_time"),
            F.min_by("place.position", "time").alias("position"),
        )
    )
    return found(
        sums,
        "captured-twice",
        WARNING,
        time=F.col("time"),
        end_time=F.col("end_time"),
        file=F.col("file"),
        position=F.col("position"),
        detail=F.format_string(
            "%s in the recording of %s too, and count twice",
            counted("copies", "exchange is", "exchanges are"), "other",
        ),
    )


def _copies(exchanges: DataFrame, pairs: DataFrame) -> DataFrame:
    """Count the exchanges of connections that occur again within the clock difference."""
    chosen = exchanges.select(*_ends(), "api_key", "correlation_id", "time").join(
        pairs.select("a", "b").distinct(), ["a", "b"], "leftsemi"
    )
    again = chosen.groupBy("a", "b", "api_key", "correlation_id").agg(
        F.count("*").alias("count"), F.min("time").alias("time"), F.max("time").alias("end_time")
    )
    near = F.unix_micros("end_time") - F.unix_micros("time") <= _CLOCKS_S * 1_000_000
    return (
        again.where((F.col("count") > 1) & near)
        .groupBy("a", "b")
        .agg(
            F.count("*").alias("copies"),
            F.min("time").alias("time"),
            F.max("end_time").alias("end_time"),
        )
    )


RULES = (AnomalyRule("captured-twice", ("connections", "exchanges"), _captured_twice),)
