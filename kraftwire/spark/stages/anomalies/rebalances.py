"""Groups that keep rebalancing."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.anomalies.rule import WARNING, AnomalyRule, at, found
from kraftwire.spark.stages.keys import evidence, with_session
from kraftwire.spark.stages.stage import Tables

# A starting group may take two or three generations, at most session.timeout.ms apart; a rolling
# restart takes two for each member.
_GENERATIONS = 5
_PER_MEMBER = 2
_GAP_S = 45.0


def _rebalance_storm(tables: Tables) -> DataFrame:
    """A group goes through one generation after the other."""
    rounds = tables["groups"].withColumn("time_ns", F.unix_micros("start") * 1000)
    keys = ("cluster", "group_id", "protocol")
    storms = (
        with_session(rounds, keys, _GAP_S)
        .groupBy(*keys, "session")
        .agg(
            F.count("*").alias("count"),
            F.min("generation").alias("first"),
            F.max("generation").alias("last"),
            F.max("end").alias("end"),
            F.max("members").alias("members"),
            F.first("reason", ignorenulls=True).alias("reason"),
            evidence(),
            F.min("time_ns").alias("time_ns"),
        )
        .where(F.col("count") >= _GENERATIONS)
        .where(F.col("count") > _PER_MEMBER * F.coalesce("members", F.lit(0)))
    )
    reason = F.coalesce(F.concat(F.lit(", the reason given is: "), "reason"), F.lit(""))
    return found(
        storms,
        "rebalance-storm",
        WARNING,
        time=at("time_ns"),
        end_time=F.col("end"),
        node=F.col("group_id"),
        detail=F.format_string(
            "%d rebalances from generation %d to %d%s", "count", "first", "last", reason
        ),
    )


RULES = (AnomalyRule("rebalance-storm", ("groups",), _rebalance_storm),)
