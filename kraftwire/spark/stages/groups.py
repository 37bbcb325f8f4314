"""Rebalances of groups: a row for each generation that members reached.

In a classic group, a rebalance lasts from the first JoinGroup of a generation to the last response
to SyncGroup. The other protocols have no rounds: there it lasts from the first member that learns
of an epoch to the last.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.clusters import with_cluster
from kraftwire.spark.stages.group_facts import group_facts
from kraftwire.spark.stages.keys import evidence
from kraftwire.spark.stages.stage import Tables

__all__ = ["groups"]

_KEYS = ("cluster", "group_id", "protocol", "generation")


def groups(tables: Tables) -> DataFrame:
    """Return one row for each generation or epoch of a group."""
    facts = with_cluster(group_facts(tables["group_exchanges"]), tables).where(
        "kind <> 'commit' and error_code = 0 and generation > 0"
    )
    # A member that repeats its epoch takes part once, with its first heartbeat.
    first = facts.groupBy(*_KEYS, "member_id", "kind").agg(
        F.min("time_ns").alias("time_ns"),
        F.min("end_ns").alias("end_ns"),
        F.min_by("reason", "time_ns").alias("reason"),
        F.min_by("file", "time_ns").alias("file"),
        F.min_by("position", "time_ns").alias("position"),
    )
    rounds = first.groupBy(*_KEYS).agg(
        F.timestamp_micros(F.expr("min(time_ns) div 1000")).alias("start"),
        F.timestamp_micros(F.expr("max(end_ns) div 1000")).alias("end"),
        F.count_distinct("member_id").cast("int").alias("members"),
        F.min_by("reason", F.when(F.col("reason").isNotNull(), F.col("time_ns"))).alias("reason"),
        evidence(),
    )
    return rounds.select(
        *_KEYS, "start", "end", "members", "reason",
        "place.file", "place.position",
    )
