"""The lag of replicas, second by second, from their own Fetches.

A replica's lag is the distance from its fetch offset to the end of the log as known then: the
largest high watermark so far, since committed records stay, or an end seen in this leader epoch,
since uncommitted records may be lost with the epoch. A node that does not fetch has no lag: a
leader, or a replica that is down.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftwire.decode.body.context import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.spark.stages.clusters import with_cluster
from kraftwire.spark.stages.keys import answered, topic_key
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables import TABLES
from kraftwire.wire.json_form import uuid_to_text

__all__ = ["replica_lag"]

_METADATA_ID = uuid_to_text(METADATA_TOPIC_ID)
_LOG = ("cluster", "name", "partition")
_REPLICA = (*_LOG, "replica_id")


def replica_lag(tables: Tables) -> DataFrame:
    """Return the largest lag of each replica in each second in which it fetched."""
    fetches = _caught_up(_with_end(_moments(tables)).where("fetch_offset is not null"))
    lag = F.greatest(F.lit(0).cast("bigint"), F.col("end") - F.col("fetch_offset"))
    behind = (F.col("time_ns") - F.col("caught_up_ns")) / 1e6
    return (
        fetches.withColumn("lag", lag)
        .withColumn("behind", F.when(F.col("lag") == 0, F.lit(0.0)).otherwise(behind))
        .withColumn("bucket", F.expr("timestamp_seconds(time_ns div 1000000000)"))
        .groupBy("bucket", *_REPLICA)
        .agg(
            F.max("topic").alias("topic"),
            F.max("topic_id").alias("topic_id"),
            F.max("lag").alias("lag_max"),
            F.max("behind").alias("behind_ms"),
            F.count("*").alias("fetches"),
        )
        .select(TABLES["replica_lag"].arrow.names)
    )


def _moments(tables: Tables) -> DataFrame:
    """Return two rows for each Fetch: the request has the replica's end, the response the leader's.
    """
    seen = _of_quorum(tables["quorum_observations"]).unionByName(
        _of_partitions(tables["partition_traffic"])
    )
    timed = with_cluster(answered(seen, tables["exchanges"]), tables)
    timed = timed.withColumn("name", topic_key())
    common = (*_LOG, "topic", "topic_id", "leader_epoch")
    asked = timed.where("is_fetch").select(*common, "replica_id", "time_ns", "fetch_offset")
    told = timed.select(
        *common, F.col("end_ns").alias("time_ns"), "high_watermark", "log_end_offset"
    )
    return asked.unionByName(told, allowMissingColumns=True)


def _of_quorum(observations: DataFrame) -> DataFrame:
    return observations.select(
        "file",
        "position",
        "time_ns",
        "cluster",
        F.lit(METADATA_TOPIC).alias("topic"),
        F.lit(_METADATA_ID).alias("topic_id"),
        F.lit(0).alias("partition"),
        "replica_id",
        "leader_epoch",
        "fetch_offset",
        "high_watermark",
        "log_end_offset",
        ((F.col("source") == "fetch") & (F.col("replica_id") >= 0)).alias("is_fetch"),
    )


def _of_partitions(traffic: DataFrame) -> DataFrame:
    """Return the ends in every row, including the last record that a client produced."""
    produced = F.when(F.col("kind") == "produce", F.col("offset") + F.col("records"))
    fetched = F.when(F.col("kind") == "replica-fetch", F.col("offset"))
    return traffic.where(
        (F.coalesce("topic", F.lit("")) != METADATA_TOPIC)
        & (F.coalesce("error_code", F.lit(0)) == 0)
    ).select(
        "file",
        "position",
        "time_ns",
        F.lit(None).cast("string").alias("cluster"),
        "topic",
        "topic_id",
        "partition",
        "replica_id",
        "leader_epoch",
        fetched.alias("fetch_offset"),
        "high_watermark",
        F.coalesce("log_end_offset", produced).alias("log_end_offset"),
        ((F.col("kind") == "replica-fetch") & (F.col("replica_id") >= 0)).alias("is_fetch"),
    )


def _with_end(moments: DataFrame) -> DataFrame:
    """Add the end of the log as known at each moment."""
    past = (Window.unboundedPreceding, Window.currentRow)
    log = Window.partitionBy(*_LOG).orderBy("time_ns").rangeBetween(*past)
    epoch = Window.partitionBy(*_LOG, "leader_epoch").orderBy("time_ns").rangeBetween(*past)
    return moments.withColumn(
        "end",
        F.greatest(
            F.max("high_watermark").over(log),
            F.max("log_end_offset").over(epoch),
            F.max("fetch_offset").over(epoch),
        ),
    )


def _caught_up(fetches: DataFrame) -> DataFrame:
    """Add when the replica was last caught up, by the rule of KIP-836.

    A Fetch at the end of the log means now; one at what was the end at the previous Fetch means
    then.
    """
    order = Window.partitionBy(*_REPLICA).orderBy("time_ns")
    past = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before_end, before = F.lag("end").over(order), F.lag("time_ns").over(order)
    moment = F.when(F.col("fetch_offset") >= F.col("end"), F.col("time_ns")).when(
        F.col("fetch_offset") >= F.col("before_end"), F.col("before")
    )
    return (
        fetches.withColumns({"before_end": before_end, "before": before})
        .withColumn("moment", moment)
        .withColumn("caught_up_ns", F.max("moment").over(past))
    )
