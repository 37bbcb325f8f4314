"""The lag of groups and of replicas, in records and in time, second by second.

A group's lag can grow while it commits nothing, so there is a row for every second in which it
commits or the end of the partition moves. The end is the largest high watermark so far.

A replica's lag is the distance from its fetch offset to the end of the log as known then: the
largest high watermark so far, since committed records stay, or an end seen in this leader epoch,
since uncommitted records may be lost with the epoch. A node that does not fetch has no lag: a
leader, or a replica that is down.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.spark.stages.clusters import same, with_cluster
from kraftwire.spark.stages.groups import group_facts
from kraftwire.spark.stages.keys import topic_key, with_response_time
from kraftwire.spark.stages.recorded import with_part
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables import TABLES
from kraftwire.wire.json_form import uuid_to_text

_PARTITION = ("cluster", "name", "partition")
_GROUP = ("group_id", *_PARTITION)
_PAST = (Window.unboundedPreceding, Window.currentRow)

_METADATA_ID = uuid_to_text(METADATA_TOPIC_ID)
_LOG = ("cluster", "name", "partition")
_REPLICA = (*_LOG, "replica_id")


def group_lag(tables: Tables) -> DataFrame:
    """Return committed offset, end and lag of each group and partition."""
    traffic = _named(with_cluster(tables["partition_traffic"], tables))
    commits = _commits(tables, traffic)
    ends = _ends(traffic)
    rows = _states(commits, ends, tables)
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


def _states(commits: DataFrame, ends: DataFrame, tables: Tables) -> DataFrame:
    """Merge commits and moves of the end in order; each row has the last of both.

    A commit holds no longer than the recording goes on: later ones may have been missed.
    """
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
    recorded = Window.partitionBy(*_GROUP, "part").orderBy("bucket").rowsBetween(*_PAST)
    # The second of a row ends a second after its start.
    end_ns = (F.unix_micros("bucket") + 1_000_000) * 1000
    return (
        with_part(both, tables, end_ns)
        .withColumn("committed", F.last("committed", ignorenulls=True).over(recorded))
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


def replica_lag(tables: Tables) -> DataFrame:
    """Return the largest lag of each replica in each second in which it fetched."""
    fetches = _with_end(_both_ends(tables)).where("fetch_offset is not null")
    fetches = _caught_up(with_part(fetches, tables, F.col("time_ns")))
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


def _both_ends(tables: Tables) -> DataFrame:
    """Return two rows for each Fetch: the request has the replica's end, the response the leader's.
    """
    seen = _of_quorum(tables["quorum_observations"]).unionByName(
        _of_partitions(tables["partition_traffic"])
    )
    timed = with_cluster(with_response_time(seen, tables["exchanges"]), tables)
    timed = timed.withColumn("name", topic_key())
    common = (*_LOG, "topic", "topic_id", "leader_epoch")
    requests = timed.where("is_fetch").select(*common, "replica_id", "time_ns", "fetch_offset")
    responses = timed.select(
        *common, F.col("end_ns").alias("time_ns"), "high_watermark", "log_end_offset"
    )
    return requests.unionByName(responses, allowMissingColumns=True)


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
    then. Whether it was after what was not recorded is not known until it is again.
    """
    order = Window.partitionBy(*_REPLICA, "part").orderBy("time_ns")
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
