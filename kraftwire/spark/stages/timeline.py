"""The Raft timeline of every cluster: the timeline of the decode tool, fed with rows.

Owns which rows belong to which cluster, and their order. SQL cannot express it: how an epoch ended
depends on everything before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from kraftwire import messages
from kraftwire.capture.framing.frames import Ending
from kraftwire.decode.body.context import METADATA_TOPIC
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.records.messages import Decoded
from kraftwire.spark.stages.clusters import of_files, with_cluster
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables import TABLES, Table
from kraftwire.story.raft.metadata_log import Extent
from kraftwire.story.raft.table_rows import BatchRow, ExchangeRow, LocatedEvent, QuorumRows

__all__ = ["raft_timeline"]

# Control records in the timeline; the names of their schemas.
_CONTROLS = ("LeaderChangeMessage", "VotersRecord", "KRaftVersionRecord")

_COLUMNS = (
    "cluster",
    "time_ns",
    "position",
    "file",
    "response_file",
    "response_position",
    "connection",
    "api_key",
    "api_version",
    "correlation_id",
    "latency_ns",
    "request",
    "response",
    "extents",
    "controls",
    "response_size",
    "closed_by",
    "is_reset",
)
_SECOND_NS = 1_000_000_000

# The input for one cluster.
_EVENTS = Table(
    "events",
    "An event.",
    tuple(
        each for each in TABLES["raft_timeline"].columns if each.name not in ("time", "cluster")
    ),
)


def raft_timeline(tables: Tables) -> DataFrame:
    """Return the events of every quorum, from its exchanges and the batches of its log."""
    talk = tables["raft_exchanges"].where("request is not null")
    server = F.substring_index("connection", "-", -1)
    exchanges = with_cluster(talk.withColumn("server", server), tables)
    extents, controls = _extents(tables["batches"]), _controls(tables["metadata_records"])
    place = ["file", "position"]
    found = extents.join(controls, place, "left")
    on_wire = (
        found.where("source = 'wire'")
        .select(
            F.col("file").alias("response_file"), F.col("position").alias("response_position"),
            "extents", "controls",
        )
    )
    spoken = exchanges.join(on_wire, ["response_file", "response_position"], "left").join(
        F.broadcast(_sizes(tables["exchanges"])), place, "left"
    )
    written = of_files(found.where("source <> 'wire'"), tables)
    rows = (
        spoken.unionByName(_endings(tables, exchanges), allowMissingColumns=True)
        .unionByName(written, allowMissingColumns=True)
        .select(*_COLUMNS)
    )
    # The order survives the grouping, which orders only by cluster.
    ordered = rows.repartition("cluster").sortWithinPartitions("cluster", "time_ns", "position")
    told = ordered.groupBy("cluster").agg(_tell(*_COLUMNS).alias("events"))
    events = told.select("cluster", F.inline("events"))
    time = F.timestamp_micros(F.expr("time_ns div 1000"))
    return events.withColumn("time", time).select(TABLES["raft_timeline"].arrow.names)


def _endings(tables: Tables, exchanges: DataFrame) -> DataFrame:
    """Return the ends of a quorum's connections: where, when, and who closed them."""
    spoken = exchanges.groupBy("connection", "cluster").agg(F.min("time_ns").alias("_first"))
    closed = tables["connections"].where("closed_ns is not null").select(
        "file", "position", "connection", F.col("closed_ns").alias("time_ns"), "closed_by",
        "is_reset",
    )
    return closed.join(F.broadcast(spoken), "connection").where("time_ns >= _first")


def _sizes(exchanges: DataFrame) -> DataFrame:
    """Return the lengths of FetchSnapshot responses before the snapshot bytes were removed."""
    slices = exchanges.where(F.col("api_key") == FetchSnapshotResponse.API_KEY)
    return slices.groupBy("file", "position").agg(F.max("response_size").alias("response_size"))


def _extents(batches: DataFrame) -> DataFrame:
    """Return the batches of the metadata log at every place; those of a frame share one."""
    extent = F.struct("base_offset", "last_offset", "leader_epoch")
    return (
        batches.where((F.col("topic") == METADATA_TOPIC) & F.col("is_valid"))
        .where("source in ('wire', 'log')")
        .groupBy("file", "position", "source")
        .agg(
            F.max(_nanoseconds("max_timestamp")).alias("time_ns"),
            F.sort_array(F.collect_list(extent)).alias("extents"),
        )
    )


def _controls(records: DataFrame) -> DataFrame:
    record = F.struct("offset", _nanoseconds("time").alias("time_ns"), "type", "version", "data")
    return (
        records.where(F.col("type").isin(*_CONTROLS))
        .groupBy("file", "position")
        .agg(F.sort_array(F.collect_list(record)).alias("controls"))
    )


def _nanoseconds(column: str) -> Column:
    return F.unix_micros(column) * 1000


@F.arrow_udf(returnType=ArrayType(_EVENTS.spark))
def _tell(batches: Iterator[tuple[pa.Array, ...]]) -> Any:
    """Yield the events of one cluster, from batches of its rows."""
    quorum, latest = QuorumRows(), 0
    for arrays in batches:
        for row in pa.RecordBatch.from_arrays(list(arrays), list(_COLUMNS)).to_pylist():
            time_ns = row["time_ns"] or 0
            if time_ns < latest:
                raise RuntimeError(f"rows of cluster {row['cluster']} are not in time order")
            latest = time_ns
            if row["closed_by"] is not None:
                quorum.on_ending(_ending(row), row["file"], row["position"])
            elif row["request"] is None:
                for each in _batch_rows(row):
                    quorum.on_batch(each)
            else:
                quorum.on_exchange(_exchange_row(row))
    events = [_event_row(event) for event in quorum.located_events()]
    return pa.scalar(events, pa.list_(pa.struct(list(_EVENTS.arrow))))


def _ending(row: dict[str, Any]) -> Ending:
    is_by_client = row["closed_by"] == "client"
    return Ending(row["connection"], row["time_ns"], is_by_client, row["is_reset"])


def _exchange_row(row: dict[str, Any]) -> ExchangeRow:
    return ExchangeRow(
        row["time_ns"],
        row["connection"],
        row["api_key"],
        row["api_version"],
        row["correlation_id"],
        row["request"],
        row["response"],
        row["latency_ns"],
        row["file"],
        row["position"],
        row["response_position"],
        row["cluster"],
        tuple(_batch_rows(row)),
        row["response_size"],
        row["response_file"],
    )


def _batch_rows(row: dict[str, Any]) -> Iterator[BatchRow]:
    records = [
        (_decoded(each), each["offset"], each["time_ns"] / _SECOND_NS)
        for each in row["controls"] or ()
    ]
    for each in row["extents"] or ():
        extent = Extent(each["base_offset"], each["last_offset"], each["leader_epoch"])
        inside = (r for r in records if extent.base_offset <= r[1] <= extent.last_offset)
        yield BatchRow(extent, tuple(inside))


def _decoded(record: dict[str, Any]) -> Decoded:
    name, version = record["type"], record["version"]
    message = messages.find(name).from_json(json.loads(record["data"]), version)
    return Decoded(name, version, message)


def _event_row(seen: LocatedEvent) -> dict[str, Any]:
    event = seen.event
    return {
        "time_ns": seen.time_ns,
        "kind": event.kind,
        "epoch": event.epoch,
        "node": None if event.node is None else str(event.node),
        "text": event.text,
        "details": json.dumps(seen.details),
        "file": seen.file or None,
        "position": seen.position if seen.file else None,
    }
