"""Partitions: sizes, leaders, and each one's share of its topic."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftwire.spark.stages.clusters import of_files, same, with_cluster
from kraftwire.spark.stages.keys import topic_key
from kraftwire.spark.stages.stage import Tables


def partitions(tables: Tables) -> DataFrame:
    """Return a row for each partition that was produced to, fetched from, or is in a log directory.
    """
    traffic = _from_traffic(with_cluster(tables["partition_traffic"], tables))
    logs = _from_logs(of_files(tables["batches"].where("source = 'log'"), tables))
    is_one = (
        same("traffic.cluster", "logs.cluster")
        & (F.col("traffic.name") == F.col("logs.name"))
        & (F.col("traffic.partition") == F.col("logs.partition"))
    )
    both = traffic.alias("traffic").join(logs.alias("logs"), is_one, "full")
    rows = both.select(
        F.coalesce("traffic.cluster", "logs.cluster").alias("cluster"),
        F.coalesce("traffic.topic", "logs.topic").alias("topic"),
        F.coalesce("traffic.topic_id", "logs.topic_id").alias("topic_id"),
        F.coalesce("traffic.partition", "logs.partition").alias("partition"),
        "leader",
        F.greatest("traffic.leader_epoch", "logs.leader_epoch").alias("leader_epoch"),
        # A capture holds only part of a log.
        F.coalesce("log_bytes", "produced_bytes").alias("produced_bytes"),
        F.coalesce("log_records", "produced_records").alias("produced_records"),
        "fetched_bytes",
        "high_watermark",
    )
    of_topic = F.sum("produced_bytes").over(Window.partitionBy("cluster", "topic"))
    share = F.when(of_topic > 0, F.col("produced_bytes") / of_topic)
    return rows.withColumn("share", share)


def _from_traffic(traffic: DataFrame) -> DataFrame:
    produced, fetched = F.col("kind") == "produce", F.col("kind") != "produce"
    accepted = F.coalesce("error_code", F.lit(0)) == 0
    answered = F.when(accepted, F.col("server"))
    return traffic.groupBy("cluster", topic_key(), "partition").agg(
        F.max("topic").alias("topic"),
        F.max("topic_id").alias("topic_id"),
        F.max_by(answered, F.when(accepted, F.col("time_ns"))).alias("leader"),
        F.max("leader_epoch").alias("leader_epoch"),
        F.sum(F.when(produced & accepted, F.col("bytes"))).alias("produced_bytes"),
        F.sum(F.when(produced & accepted, F.col("records"))).alias("produced_records"),
        F.sum(F.when(fetched, F.col("bytes"))).alias("fetched_bytes"),
        F.max("high_watermark").alias("high_watermark"),
    )


def _from_logs(batches: DataFrame) -> DataFrame:
    """Return the largest copy of each log; every replica has one, in its own folder."""
    copies = (
        batches.where("is_valid")
        .withColumn("folder", F.regexp_extract("file", "^(.*)/[^/]*$", 1))
        .groupBy("cluster", topic_key(), "partition", "folder")
        .agg(
            F.max("topic").alias("topic"),
            F.max("topic_id").alias("topic_id"),
            F.max("leader_epoch").alias("leader_epoch"),
            F.sum("size").alias("bytes"),
            F.sum("count").alias("records"),
        )
    )
    return copies.groupBy("cluster", "name", "partition").agg(
        F.max("topic").alias("topic"),
        F.max("topic_id").alias("topic_id"),
        F.max("leader_epoch").alias("leader_epoch"),
        F.max("bytes").alias("log_bytes"),
        F.max("records").alias("log_records"),
    )
