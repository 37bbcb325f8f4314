"""The cluster of each row, so that two clusters in one folder never mix.

Few frames carry a cluster id: requests of a quorum, and responses to Metadata and DescribeCluster.
The meta.properties of log directories have it too. The connections with such frames determine the
cluster of all others.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftwire.spark.stages.stage import Tables

# The table that `clusters` makes and the other functions use.
CLUSTERS = "clusters"

_CAPTURE = "capture"


def clusters(tables: Tables) -> DataFrame:
    """Return the cluster of each server in each file, and of each file of a log directory.

    A server belongs to the cluster named on its connections in the same file; failing that, in any
    file; failing that, to the only cluster that its file names, or to the only one that any input
    names. If several remain, there is no row.
    """
    connections, files = tables["connections"], tables["files"]
    named = connections.where("cluster is not null").select(
        "file", "server", "cluster", "frames"
    )
    here = named.groupBy("file", "server").agg(F.max_by("cluster", "frames").alias("here"))
    there = named.groupBy("server").agg(_single().alias("there"))
    in_file = named.groupBy("file").agg(_single().alias("in_file"))
    names = named.select("cluster").union(files.select("cluster"))
    only = F.broadcast(names.agg(_single().alias("only")))
    # A connection has a row in the first of the files that it spans.
    place = ["file", "server"]
    servers = tables["exchanges"].select(place).union(connections.select(place)).distinct()
    of_servers = (
        servers.join(F.broadcast(here), place, "left")
        .join(F.broadcast(there), "server", "left")
        .join(F.broadcast(in_file), "file", "left")
        .crossJoin(only)
        .select(*place, F.coalesce("here", "there", "in_file", "only").alias("cluster"))
    )
    of_logs = files.where(F.col("kind") != _CAPTURE).crossJoin(only).select(
        "file", F.lit(None).cast("string").alias("server"),
        F.coalesce("cluster", "only").alias("cluster"),
    )
    return of_servers.union(of_logs).where("cluster is not null")


def with_cluster(rows: DataFrame, tables: Tables) -> DataFrame:
    """Fill the column `cluster` of rows that have `file` and `server`, where it is null."""
    known = tables[CLUSTERS].select("file", "server", F.col("cluster").alias("_cluster"))
    joined = rows.join(F.broadcast(known), ["file", "server"], "left")
    present: list[str | Column] = ["cluster"] if "cluster" in rows.columns else []
    return joined.withColumn("cluster", F.coalesce(*present, "_cluster")).drop("_cluster")


def of_files(rows: DataFrame, tables: Tables) -> DataFrame:
    """Add the column `cluster` to rows of files of logs."""
    known = tables[CLUSTERS].where("server is null").select("file", "cluster")
    return rows.join(F.broadcast(known), "file", "left")


def same(left: str, right: str) -> Column:
    """Whether two columns are the same cluster, or both unknown."""
    return F.col(left).eqNullSafe(F.col(right))


def _single() -> Column:
    return F.when(F.min("cluster") == F.max("cluster"), F.min("cluster"))
