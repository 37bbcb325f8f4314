"""Wrong leaders: two in one epoch, or one that does not know of a newer epoch."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftwire.spark.stages.anomalies.rule import (
    ERROR,
    INFO,
    WARNING,
    AnomalyRule,
    at,
    counted,
    found,
)
from kraftwire.spark.stages.keys import span
from kraftwire.spark.stages.stage import Tables

# A response in flight when a newer epoch began does not make a zombie.
_UNDER_WAY_NS = 1_000_000_000


def _two_leaders(tables: Tables) -> DataFrame:
    """Fetch responses, DescribeQuorum or the timeline name two leaders of one epoch."""
    seen = tables["quorum_observations"].where("leader_id >= 0 and leader_epoch >= 0")
    named = seen.groupBy("cluster", "leader_epoch", "leader_id").agg(*span())
    claims = tables["raft_timeline"].where("kind in ('leader', 'conflict') and node is not null")
    named = named.select(
        "cluster",
        F.col("leader_epoch").alias("epoch"),
        F.col("leader_id").cast("string").alias("leader"),
        "time_ns",
        "end_ns",
        "place",
    ).unionByName(
        claims.select(
            "cluster", "epoch", F.col("node").alias("leader"), "time_ns",
            F.col("time_ns").alias("end_ns"), F.struct("file", "position").alias("place"),
        )
    )
    leaders = named.groupBy("cluster", "epoch").agg(
        F.sort_array(F.collect_set("leader")).alias("leaders"),
        F.min("time_ns").alias("time_ns"),
        F.max("end_ns").alias("end_ns"),
        # The evidence is the first sign of the later of the two.
        F.max_by("place", "time_ns").alias("place"),
    )
    return found(
        leaders.where(F.size("leaders") > 1),
        "two-leaders",
        ERROR,
        time=at("time_ns"),
        end_time=at("end_ns"),
        epoch=F.col("epoch"),
        node=F.array_join("leaders", ", "),
        detail=F.format_string(
            "epoch %d has two leaders: %s", "epoch", F.array_join("leaders", " and ")
        ),
    )


def _zombie_leader(tables: Tables) -> DataFrame:
    """A leader continues in its old epoch: it still answers Fetches."""
    seen = tables["quorum_observations"].where(
        "source = 'fetch' and leader_id >= 0 and leader_epoch >= 0"
    )
    before = (
        Window.partitionBy("cluster")
        .orderBy("time_ns")
        .rangeBetween(Window.unboundedPreceding, -_UNDER_WAY_NS)
    )
    late = seen.withColumn("newest", F.max("leader_epoch").over(before)).where(
        "leader_epoch < newest"
    )
    zombies = late.groupBy("cluster", "leader_epoch", "leader_id").agg(
        *span(),
        F.count("*").alias("answers"),
        F.max("newest").alias("newest"),
    )
    return found(
        zombies,
        "zombie-leader",
        ERROR,
        time=at("time_ns"),
        end_time=at("end_ns"),
        epoch=F.col("leader_epoch"),
        node=F.col("leader_id"),
        detail=F.format_string(
            "node %d answered %s as leader of epoch %d although epoch %d had begun",
            "leader_id", counted("answers", "time", "times"), "leader_epoch", "newest",
        ),
    )


def _fenced_leader(tables: Tables) -> DataFrame:
    """A leader that was killed or paused returns and learns of the newer epoch, as it should."""
    refused = tables["raft_timeline"].where("kind = 'fenced'")
    return found(
        refused, "fenced-leader", INFO, time=F.col("time"), epoch=F.col("epoch"),
        node=F.col("node"), file=F.col("file"), position=F.col("position"),
        detail=F.concat(F.lit("node "), "node", F.lit(" "), "text"),
    )


def _silent_leader(tables: Tables) -> DataFrame:
    """The leader falls silent, and its followers have to elect another one."""
    silent = tables["raft_timeline"].where(
        "kind = 'silence' and get_json_object(details, '$.wasLeader') = 'true'"
    )
    seconds = F.get_json_object("details", "$.seconds").cast("double")
    end = F.timestamp_micros(F.unix_micros("time") + (seconds * 1_000_000).cast("bigint"))
    return found(
        silent, "silent-leader", WARNING, time=F.col("time"), end_time=end,
        epoch=F.col("epoch"), node=F.col("node"), file=F.col("file"),
        position=F.col("position"),
        detail=F.concat(
            F.coalesce(
                F.concat(F.lit("node "), "node", F.lit(", the leader, ")),
                F.lit("the leader, which nothing names, "),
            ),
            F.regexp_replace("text", "^leader ", ""),
        ),
    )


RULES = (
    AnomalyRule("two-leaders", ("quorum_observations", "raft_timeline"), _two_leaders),
    AnomalyRule("zombie-leader", ("quorum_observations",), _zombie_leader),
    AnomalyRule("fenced-leader", ("raft_timeline",), _fenced_leader),
    AnomalyRule("silent-leader", ("raft_timeline",), _silent_leader),
)
