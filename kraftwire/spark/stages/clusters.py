"""Which cluster rows belong to, so that two clusters in one folder never mix.

The id of a cluster stands in few frames: in requests of a quorum, in answers to Metadata and
DescribeCluster, and in the meta.properties of log directories. The connections that carry such
frames tell of all others.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.stage import Tables

__all__ = ["CLUSTER_INPUTS", "of_files", "same", "with_cluster"]

# The tables that tell of clusters.
CLUSTER_INPUTS = ("connections", "files")


def with_cluster(rows: DataFrame, tables: Tables) -> DataFrame:
    """Fill the column `cluster` of rows that have `file` and `server`, where it is null.

    A row belongs to the cluster that is named by connections to its server in its file; failing
    these, anywhere; failing these, to the only cluster that its file names, or to the only one
    that any input names. It stays null if several remain.
    """
    named = tables["connections"].where("cluster is not null").select(
        "file", "server", "cluster", "frames"
    )
    here = named.groupBy("file", "server").agg(F.max_by("cluster", "frames").alias("_here"))
    there = named.groupBy("server").agg(_single().alias("_there"))
    in_file = named.groupBy("file").agg(_single().alias("_in_file"))
    told: list[str | Column] = ["cluster"] if "cluster" in rows.columns else []
    joined = (
        rows.join(F.broadcast(here), ["file", "server"], "left")
        .join(F.broadcast(there), "server", "left")
        .join(F.broadcast(in_file), "file", "left")
        .crossJoin(F.broadcast(_only(tables)))
    )
    cluster = F.coalesce(*told, "_here", "_there", "_in_file", "_only")
    return joined.withColumn("cluster", cluster).drop("_here", "_there", "_in_file", "_only")


def of_files(rows: DataFrame, tables: Tables) -> DataFrame:
    """Add the column `cluster` to rows of files of logs, by the file's log directory.

    Rows of a directory without meta.properties belong to the only cluster that any input names.
    """
    named = tables["files"].where("cluster is not null").groupBy("file").agg(
        F.max("cluster").alias("_here")
    )
    joined = rows.join(F.broadcast(named), "file", "left").crossJoin(F.broadcast(_only(tables)))
    cluster = F.coalesce("_here", "_only")
    return joined.withColumn("cluster", cluster).drop("_here", "_only")


def same(left: str, right: str) -> Column:
    """Whether two columns are the same cluster, or both unknown."""
    return F.col(left).eqNullSafe(F.col(right))


def _only(tables: Tables) -> DataFrame:
    """One row: the only cluster that connections and files name, else null."""
    names = tables["connections"].select("cluster").union(tables["files"].select("cluster"))
    return names.agg(_single().alias("_only"))


def _single() -> Column:
    return F.when(F.min("cluster") == F.max("cluster"), F.min("cluster"))
