"""The lag of groups, in records and in time, second by second.

A group's lag can grow while it commits nothing, so there is a row for every second in which it
commits or the end of the partition moves. The end is the largest high watermark so far.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftwire.spark.stages.clusters import same, with_cluster
from kraftwire.spark.stages.group_facts import group_facts
from kraftwire.spark.stages.keys import topic_key
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables import TABLES

__all__ = ["group_lag"]

_PARTITION = ("cluster", "name", "partition")
_GROUP = ("group_id", *_PARTITION)
_PAST = (Window.unboundedPreceding, Window.currentRow)


def group_lag(tables: Tables) -> DataFrame:
    """Return committed offset, end and lag of each group and partition."""
    traffic = _named(with_cluster(tables["partition_traffic"], tables))
    commits = _commits(tables, traffic)
    ends = _ends(traffic)
    rows = _states(commits, ends)
    distance = F.col("end_offset") - F.col("committed")
    rows = rows.withColumn("lag", F.when(distance < 0, F.lit(0)).otherwise(distance))
    return _with_age(rows, traffic).select(TABLES["group_lag"].arrow.names)


def _named(traffic: DataFrame) -> DataFrame:
    return traffic.withColumn("name", topic_key()).withColumn(
        "bucket", F.date_trunc("second", "time")
    )


def _commits(tables: Tables, traffic: DataFrame) -> DataFrame:
    """Return the last offset that a group committed in each second; names for ids if known."""
    names = (
        traffic.where("topic is not null and topic_id is not null")
        .groupBy("topic_id")
        .agg(F.max("topic").alias("known"))
    )
    facts = group_facts(tables["group_exchanges"]).where("kind = 'commit' and error_code = 0")
    return (
        with_cluster(facts, tables)
        .join(F.broadcast(names), "topic_id", "left")
        .withColumn("topic", F.coalesce("topic", "known"))
        .withColumn("name", topic_key())
        .withColumn(
            "bucket", F.date_trunc("second", F.timestamp_micros(F.expr("end_ns div 1000")))
        )
        .groupBy("bucket", *_GROUP)
        .agg(
            F.max_by("offset", "end_ns").alias("committed"),
            F.max("topic").alias("topic"),
            F.max("topic_id").alias("topic_id"),
        )
    )


def _ends(traffic: DataFrame) -> DataFrame:
    """Return the end of each partition in each second in which it is known to have moved."""
    highest = traffic.groupBy("bucket", *_PARTITION).agg(F.max("high_watermark").alias("highest"))
    order = Window.partitionBy(*_PARTITION).orderBy("bucket")
    before = F.max("highest").over(order.rowsBetween(Window.unboundedPreceding, -1))
    moved = highest.withColumn("before", before).where("before is null or highest > before")
    return moved.where("highest >= 0").select("bucket", *_PARTITION, "highest")


def _states(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """Merge commits and moves of the end in order; each row has the last of both."""
    groups = commits.groupBy(*_GROUP).agg(
        F.min("bucket").alias("since"), F.max("topic").alias("t"), F.max("topic_id").alias("i")
    )
    # The end before the first commit counts too, so earlier rows are dropped only afterwards.
    ends = ends.withColumnRenamed("cluster", "_cluster")
    moves = groups.join(ends, ["name", "partition"]).where(same("cluster", "_cluster")).select(
        "bucket", *_GROUP, F.col("t").alias("topic"), F.col("i").alias("topic_id"), "highest"
    )
    both = (
        commits.unionByName(moves, allowMissingColumns=True)
        .groupBy("bucket", *_GROUP)
        .agg(
            F.max("committed").alias("committed"),
            F.max("highest").alias("highest"),
            F.max("topic").alias("topic"),
            F.max("topic_id").alias("topic_id"),
        )
    )
    past = Window.partitionBy(*_GROUP).orderBy("bucket").rowsBetween(*_PAST)
    return (
        both.withColumn("committed", F.last("committed", ignorenulls=True).over(past))
        .withColumn("end_offset", F.max("highest").over(past))
        .where("committed is not null")
    )


def _with_age(rows: DataFrame, traffic: DataFrame) -> DataFrame:
    """Add the age of the first uncommitted record, from the batch it was produced in."""
    produced = traffic.where("kind = 'produce' and coalesce(error_code, 0) = 0 and records > 0")
    batches = produced.groupBy(*_PARTITION, (F.expr("offset + records - 1")).alias("at")).agg(
        F.min("first_timestamp").alias("written")
    )
    wanted = rows.withColumn("at", F.col("committed"))
    ahead = (
        Window.partitionBy(*_PARTITION)
        .orderBy("at")
        .rangeBetween(Window.currentRow, Window.unboundedFollowing)
    )
    both = wanted.unionByName(batches, allowMissingColumns=True)
    first = F.first("written", ignorenulls=True).over(ahead)
    # The second of a row ends a second after its start.
    age = (F.unix_micros("bucket") + 1_000_000 - F.unix_micros("first")) / 1000
    return (
        both.withColumn("first", first)
        .where("group_id is not null")
        .withColumn(
            "behind_ms",
            F.when(F.col("lag") == 0, F.lit(0.0)).otherwise(F.greatest(F.lit(0.0), age)),
        )
    )
