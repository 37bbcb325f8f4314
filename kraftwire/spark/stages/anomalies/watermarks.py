"""High watermarks that go back, as if committed records no longer were, or that stand still."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.spark.stages.anomalies.rule import ERROR, WARNING, AnomalyRule, at, found
from kraftwire.spark.stages.clusters import CLUSTERS, with_cluster
from kraftwire.spark.stages.keys import span, topic_key, with_response_time
from kraftwire.spark.stages.stage import Tables

# Responses on different connections overtake each other by less than this.
_OVERTAKING_NS = 1_000_000_000
_STUCK_S = 3
# A topic that was deleted and created again has another id.
_LOG = ("cluster", "name", "topic_id", "partition")


def _high_watermark_back(tables: Tables) -> DataFrame:
    """A server reports a lower high watermark than before.

    Two servers may differ: a new leader, and any follower, learns of it later.
    """
    reported = _of_quorum(tables["quorum_observations"]).unionByName(
        _of_partitions(with_cluster(tables["partition_traffic"], tables))
    )
    timed = with_response_time(reported, tables["exchanges"])
    timed = timed.withColumn("time_ns", F.col("end_ns"))
    before = (
        Window.partitionBy(*_LOG, "node", "epoch")
        .orderBy("time_ns")
        .rangeBetween(Window.unboundedPreceding, -_OVERTAKING_NS)
    )
    back = timed.withColumn("highest", F.max("high_watermark").over(before)).where(
        "high_watermark < highest"
    )
    spans = back.groupBy(*_LOG, "node", "epoch").agg(
        *span(),
        F.min_by("highest", "time_ns").alias("from"),
        F.min_by("high_watermark", "time_ns").alias("to"),
    )
    return found(
        spans,
        "high-watermark-back",
        ERROR,
        time=at("time_ns"),
        end_time=at("end_ns"),
        epoch=F.col("epoch"),
        node=F.col("node"),
        detail=F.format_string(
            "high watermark of %s-%d goes back from %d to %d", "name", "partition", "from", "to"
        ),
    )


def _stuck_high_watermark(tables: Tables) -> DataFrame:
    """Records waited for a majority longer than a quorum needs to replace a leader."""
    seconds = F.get_json_object("details", "$.seconds").cast("double")
    stuck = tables["raft_timeline"].where((F.col("kind") == "stuck") & (seconds >= _STUCK_S))
    end = F.timestamp_micros(F.unix_micros("time") + (seconds * 1_000_000).cast("bigint"))
    return found(
        stuck, "stuck-high-watermark", WARNING, time=F.col("time"), end_time=end,
        epoch=F.col("epoch"), file=F.col("file"), position=F.col("position"), detail=F.col("text"),
    )


def _of_quorum(observations: DataFrame) -> DataFrame:
    return observations.where("source = 'fetch' and high_watermark >= 0").select(
        "cluster",
        F.lit(METADATA_TOPIC).alias("name"),
        F.lit(None).cast("string").alias("topic_id"),
        F.lit(0).alias("partition"),
        F.concat(F.lit("node "), "leader_id").alias("node"),
        F.col("leader_epoch").alias("epoch"),
        "time_ns",
        "high_watermark",
        "file",
        "position",
    )


def _of_partitions(traffic: DataFrame) -> DataFrame:
    fetched = traffic.where("kind <> 'produce' and coalesce(error_code, 0) = 0")
    return fetched.where("high_watermark >= 0").withColumn("name", topic_key()).where(
        F.col("name") != METADATA_TOPIC
    ).select(
        "cluster",
        "name",
        "topic_id",
        "partition",
        F.col("server").alias("node"),
        F.col("leader_epoch").alias("epoch"),
        "time_ns",
        "high_watermark",
        "file",
        "position",
    )


RULES = (
    AnomalyRule(
        "high-watermark-back",
        ("quorum_observations", "partition_traffic", "exchanges", CLUSTERS),
        _high_watermark_back,
    ),
    AnomalyRule("stuck-high-watermark", ("raft_timeline",), _stuck_high_watermark),
)
