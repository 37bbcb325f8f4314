"""Damaged logs, and replicas whose logs differ."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftwire.spark.stages.anomalies.rule import ERROR, WARNING, AnomalyRule, counted, found
from kraftwire.spark.stages.clusters import CLUSTERS, of_files
from kraftwire.spark.stages.keys import topic_key
from kraftwire.spark.stages.stage import Tables

_LOG = ("cluster", "name", "partition")
_BEHIND = "; the older epoch is the end of a log that is to be truncated"


def _crc_errors(tables: Tables) -> DataFrame:
    """Batches whose CRC does not match their bytes."""
    bad = tables["batches"].where("not is_valid").withColumn("name", _name())
    files = bad.groupBy("file", "name", "partition").agg(
        F.count("*").alias("count"),
        F.min("position").alias("position"),
        F.min_by("base_offset", "position").alias("offset"),
        F.min("max_timestamp").alias("time"),
    )
    return found(
        files,
        "crc-error",
        ERROR,
        time=F.col("time"),
        node=F.concat_ws("-", "name", F.col("partition").cast("string")),
        file=F.col("file"),
        position=F.col("position"),
        detail=F.format_string(
            "%s, the first at offset %d",
            counted("count", "batch fails its CRC", "batches fail their CRC"), "offset",
        ),
    )


def _diverging_logs(tables: Tables) -> DataFrame:
    """Two log directories of one cluster hold different batches at one offset.

    Followers copy a leader's batches byte for byte. Batches that the cleaner has compacted are
    ignored: each replica cleans independently. A replica that was down while a newer epoch began
    may hold more of its old one; it truncates those records when it fetches again.
    """
    logs = tables["batches"].where("source = 'log' and is_valid and base_offset is not null")
    whole = (
        of_files(logs, tables)
        .where("count = last_offset - base_offset + 1")
        .withColumn("name", _name())
        .withColumn("folder", F.regexp_extract("file", "^(.*)/[^/]*$", 1))
        .withColumn("newest", F.max("leader_epoch").over(Window.partitionBy(*_LOG, "folder")))
    )
    offsets = whole.groupBy(*_LOG, "base_offset").agg(
        F.count_distinct("folder").alias("folders"),
        F.count_distinct("leader_epoch", "crc").alias("versions"),
        F.count_distinct("leader_epoch").alias("epochs"),
        F.sort_array(F.collect_set(F.struct("folder", "leader_epoch", "newest"))).alias("copies"),
        F.max_by(F.struct("file", "position"), "leader_epoch").alias("place"),
        F.min("max_timestamp").alias("time"),
        F.max("leader_epoch").alias("epoch"),
    )
    is_behind = F.expr("forall(copies, c -> c.leader_epoch = epoch or c.newest < epoch)")
    differing = offsets.where("folders > 1 and versions > 1").withColumn(
        "is_behind", (F.col("epochs") == F.col("versions")) & is_behind
    )
    logs = differing.groupBy(*_LOG).agg(
        F.min("is_behind").alias("is_behind"),
        F.min("base_offset").alias("offset"),
        F.count("*").alias("count"),
        F.min_by("copies", "base_offset").alias("copies"),
        F.min_by("place", "base_offset").alias("place"),
        F.min_by("epoch", "base_offset").alias("epoch"),
        F.min("time").alias("time"),
    )
    copies = F.array_join(
        F.transform(
            "copies", lambda c: F.concat(c.folder, F.lit(" (epoch "), c.leader_epoch, F.lit(")"))
        ),
        ", ",
    )
    return found(
        logs,
        "diverging-logs",
        F.when(F.col("is_behind"), WARNING).otherwise(ERROR),
        time=F.col("time"),
        epoch=F.col("epoch"),
        node=F.concat_ws("-", "name", F.col("partition").cast("string")),
        detail=F.format_string(
            "replicas differ from offset %d on, in %s: %s%s",
            "offset", counted("count", "batch", "batches"), copies,
            F.when(F.col("is_behind"), _BEHIND).otherwise(""),
        ),
    )


def _name() -> Column:
    return F.coalesce(topic_key(), F.lit("unknown topic"))


RULES = (
    AnomalyRule("crc-error", ("batches",), _crc_errors),
    AnomalyRule("diverging-logs", ("batches", CLUSTERS), _diverging_logs),
)
