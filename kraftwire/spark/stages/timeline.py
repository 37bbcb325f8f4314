"""The Raft timeline of every cluster: that of `kraftwire story raft`, made from rows of tables.

Owns which rows belong to which cluster, and their order. SQL cannot express it: how an epoch ended
depends on everything before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from kraftwire import messages
from kraftwire.capture.framing.frames import Ending
from kraftwire.capture.recorded import HOST_PAIRS_MAX
from kraftwire.controller.check import Contradiction
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileFinding
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.messages import Decoded
from kraftwire.spark.logs.place import SNAPSHOT
from kraftwire.spark.stages.clusters import of_files, with_cluster
from kraftwire.spark.stages.contradictions import contradictions
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables import TABLES, Table
from kraftwire.spark.tables.files import recorded_of
from kraftwire.story.raft.coverage import Extent
from kraftwire.story.raft.metadata_log import IDLE_RECORD
from kraftwire.story.raft.model import UNREAD_TEXTS
from kraftwire.story.raft.snapshots import SnapshotSummary
from kraftwire.story.raft.table_rows import BatchRow, ExchangeRow, LocatedEvent, QuorumRows

# Control records in the timeline; the names of their schemas.
_CONTROLS = ("LeaderChangeMessage", "VotersRecord", "KRaftVersionRecord")
# Control records of snapshots in the timeline.
_OF_SNAPSHOTS = ("SnapshotHeaderRecord", "VotersRecord", "SnapshotFooterRecord")

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
    "is_idle",
    "response_size",
    "closed_by",
    "is_reset",
    "file_kind",
    "snapshot",
    "state",
    "finding",
    "length",
    "end_offset",
    "wrong_epoch",
    "wrong_offset",
    "wrong_record",
    "wrong_state",
    "recorded",
    "hosts",
)
# After the time of any record.
_LAST_NS = (1 << 63) - 1
# Kinds of files that say something by being there.
_NAMED = (SNAPSHOT, str(FileKind.LOG), str(FileKind.QUORUM_STATE))
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
    captured = tables["raft_exchanges"].where("request is not null")
    server = F.substring_index("connection", "-", -1)
    exchanges = with_cluster(captured.withColumn("server", server), tables)
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
    from_captures = exchanges.join(on_wire, ["response_file", "response_position"], "left").join(
        F.broadcast(_sizes(tables["exchanges"])), place, "left"
    )
    from_logs = of_files(found.where("source <> 'wire'"), tables)
    rows = (
        from_captures.unionByName(_endings(tables, exchanges), allowMissingColumns=True)
        .unionByName(from_logs, allowMissingColumns=True)
        .unionByName(_states(tables), allowMissingColumns=True)
        .unionByName(_unread(tables), allowMissingColumns=True)
        .unionByName(contradictions(tables), allowMissingColumns=True)
        .unionByName(_recordings(tables, exchanges), allowMissingColumns=True)
        .select(*_COLUMNS)
    )
    # The order survives the grouping, which orders only by cluster.
    ordered = rows.repartition("cluster").sortWithinPartitions("cluster", "time_ns", "position")
    by_cluster = ordered.groupBy("cluster").agg(_events_of(*_COLUMNS).alias("events"))
    events = by_cluster.select("cluster", F.inline("events"))
    time = F.timestamp_micros(F.expr("time_ns div 1000"))
    return events.withColumn("time", time).select(TABLES["raft_timeline"].arrow.names)


def _recordings(tables: Tables, exchanges: DataFrame) -> DataFrame:
    """Return what each recording shows, for every cluster with exchanges, before all else."""
    captures = tables["files"].where("recorded is not null").select(
        "file", "recording", "recorded"
    )
    times = captures.groupBy("recording").agg(
        F.sort_array(F.flatten(F.collect_list("recorded"))).alias("recorded")
    )
    ends = [F.regexp_extract(end, "^(.*):", 1) for end in ("client", "server")]
    pair = F.sort_array(F.array(*ends))
    pairs = (
        tables["connections"]
        .where("protocol = 'kafka'")
        .join(captures.select("file", "recording"), "file")
        .groupBy("recording")
        .agg(F.slice(F.collect_set(pair), 1, HOST_PAIRS_MAX).alias("hosts"))
    )
    recordings = times.join(pairs, "recording", "left").drop("recording")
    return recordings.crossJoin(exchanges.select("cluster").distinct()).withColumn(
        "time_ns", F.lit(0).cast("bigint")
    )


def _states(tables: Tables) -> DataFrame:
    """Return the state files of log directories, snapshots, and the names of others, before all
    else.
    """
    is_named = F.col("kind").isin(*_NAMED)
    files = tables["files"].where(F.col("state").isNotNull() | is_named)
    known = files.join(F.broadcast(_snapshots(tables)), "file", "left").select(
        "file", F.col("kind").alias("file_kind"), "state", "snapshot", "controls"
    )
    return of_files(known, tables).withColumn("time_ns", F.lit(0).cast("bigint"))


def _snapshots(tables: Tables) -> DataFrame:
    """Return the sums of each snapshot, and its control records."""
    batches = tables["batches"].where(F.col("source") == SNAPSHOT)
    time_ns = _nanoseconds("max_timestamp")
    time_ns = F.when(time_ns > 0, time_ns)
    crcs = F.transform(
        F.sort_array(F.collect_list(F.struct("position", "crc"))), lambda each: each.crc
    )
    count = F.sum(F.when(~F.col("is_control"), F.col("count")).otherwise(0))
    sums = batches.groupBy("file").agg(
        F.struct(
            F.sum("size").alias("size"),
            count.alias("count"),
            F.crc32(F.array_join(crcs.cast("array<string>"), " ").cast("binary")).alias("digest"),
            F.min_by(time_ns, F.when(time_ns.isNotNull(), F.col("position"))).alias("written_ns"),
            F.min(time_ns).alias("first_ns"),
            F.max(time_ns).alias("last_ns"),
        ).alias("snapshot")
    )
    controls = tables["metadata_records"].where(F.col("type").isin(*_OF_SNAPSHOTS))
    records = controls.groupBy("file").agg(
        F.sort_array(F.collect_list(_record())).alias("controls")
    )
    return sums.join(records, "file", "left")


def _unread(tables: Tables) -> DataFrame:
    """Return what was not understood of segments, after all else."""
    is_segment = F.col("kind") == str(FileKind.LOG)
    segments = tables["files"].where(is_segment & F.col("file").contains(METADATA_TOPIC))
    zeros = segments.where("header_bytes > 0").select(
        "file", F.expr("size - header_bytes").alias("position"),
        F.lit("zero-tail").alias("finding"), F.col("header_bytes").alias("length"),
    )
    bad = tables["bad_input"].where(F.col("id").isin(*UNREAD_TEXTS)).select(
        "file", "position", F.col("id").alias("finding"), "length"
    )
    found = zeros.unionByName(bad.join(segments.select("file"), "file", "left_semi"))
    batches = tables["batches"].join(found.select("file"), "file", "left_semi").select(
        "file", "position", "last_offset"
    )
    # A batch that is not valid comes after the finding about it.
    before = Window.partitionBy("file").orderBy("position", F.col("finding").isNull())
    read = F.max("last_offset").over(before.rowsBetween(Window.unboundedPreceding, -1))
    placed = found.unionByName(batches, allowMissingColumns=True).withColumn("end_offset", read + 1)
    unread = of_files(placed.where("finding is not null"), tables)
    return unread.withColumn("time_ns", F.lit(_LAST_NS).cast("bigint"))


def _endings(tables: Tables, exchanges: DataFrame) -> DataFrame:
    """Return the ends of a quorum's connections: where, when, and who closed them."""
    opened = exchanges.groupBy("connection", "cluster").agg(F.min("time_ns").alias("_first"))
    closed = tables["connections"].where("closed_ns is not null").select(
        "file", "position", "connection", F.col("closed_ns").alias("time_ns"), "closed_by",
        "is_reset",
    )
    return closed.join(F.broadcast(opened), "connection").where("time_ns >= _first")


def _sizes(exchanges: DataFrame) -> DataFrame:
    """Return the lengths of FetchSnapshot responses before the snapshot bytes were removed."""
    slices = exchanges.where(F.col("api_key") == FetchSnapshotResponse.API_KEY)
    return slices.groupBy("file", "position").agg(F.max("response_size").alias("response_size"))


def _extents(batches: DataFrame) -> DataFrame:
    """Return the batches of the metadata log at every place; those of a frame share one."""
    extent = F.struct("base_offset", "last_offset", "leader_epoch", "is_valid")
    return (
        batches.where(F.col("topic") == METADATA_TOPIC)
        .where("source = 'log' or source = 'wire' and is_valid")
        .groupBy("file", "position", "source")
        .agg(
            F.max(_nanoseconds("max_timestamp")).alias("time_ns"),
            F.sort_array(F.collect_list(extent)).alias("extents"),
        )
    )


def _controls(records: DataFrame) -> DataFrame:
    """Return the control records at every place, and whether there is an idle leader's record."""
    is_control = F.col("type").isin(*_CONTROLS)
    return (
        records.where(is_control | (F.col("type") == IDLE_RECORD))
        .groupBy("file", "position")
        .agg(
            F.sort_array(F.collect_list(F.when(is_control, _record()))).alias("controls"),
            F.max(~is_control).alias("is_idle"),
        )
    )


def _record() -> Column:
    return F.struct("offset", _nanoseconds("time").alias("time_ns"), "type", "version", "data")


def _nanoseconds(column: str) -> Column:
    return F.unix_micros(column) * 1000


@F.arrow_udf(returnType=ArrayType(_EVENTS.spark))
def _events_of(batches: Iterator[tuple[pa.Array, ...]]) -> Any:
    """Yield the events of one cluster, from batches of its rows."""
    quorum, latest = QuorumRows(), 0
    for arrays in batches:
        for row in pa.RecordBatch.from_arrays(list(arrays), list(_COLUMNS)).to_pylist():
            time_ns = row["time_ns"] or 0
            if time_ns < latest:
                raise RuntimeError(f"rows of cluster {row['cluster']} are not in time order")
            latest = time_ns
            if row["recorded"] is not None:
                pairs = ((one, other) for one, other in row["hosts"] or ())
                quorum.on_recording(recorded_of(row["recorded"], pairs))
            elif row["finding"] is not None:
                quorum.on_finding(_finding(row), row["end_offset"])
            elif row["wrong_offset"] is not None:
                _on_contradiction(quorum, row)
            elif row["file_kind"] is not None:
                _on_file(quorum, row)
            elif row["closed_by"] is not None:
                quorum.on_ending(_ending(row), row["file"], row["position"])
            elif row["request"] is None:
                for each in _batch_rows(row):
                    quorum.on_batch(each)
            else:
                quorum.on_exchange(_exchange_row(row))
    events = [_event_row(event) for event in quorum.located_events()]
    return pa.scalar(events, pa.list_(pa.struct(list(_EVENTS.arrow))))


def _on_contradiction(quorum: QuorumRows, row: dict[str, Any]) -> None:
    found = Contradiction(row["wrong_offset"], row["wrong_record"], row["wrong_state"])
    place = row["file"], row["position"], row["time_ns"]
    quorum.on_contradiction(found, *place, row["wrong_epoch"])


def _on_file(quorum: QuorumRows, row: dict[str, Any]) -> None:
    if row["file_kind"] == SNAPSHOT:
        quorum.on_snapshot(row["file"], _summary(row))
        return
    kind = FileKind(row["file_kind"])
    if row["state"] is not None:
        quorum.on_state(kind, row["file"], json.loads(row["state"]))
    else:
        quorum.on_file(kind, row["file"])


def _summary(row: dict[str, Any]) -> SnapshotSummary | None:
    sums = row["snapshot"]
    if sums is None:
        return None
    times = (sums[name] for name in ("written_ns", "first_ns", "last_ns"))
    return SnapshotSummary(
        sums["size"], sums["count"], sums["digest"], tuple(_control_records(row)),
        *(None if each is None else each / _SECOND_NS for each in times),
    )


def _control_records(row: dict[str, Any]) -> Iterator[tuple[Decoded, int, float]]:
    for each in row["controls"] or ():
        yield _decoded(each), each["offset"], each["time_ns"] / _SECOND_NS


def _finding(row: dict[str, Any]) -> FileFinding:
    return FileFinding(row["finding"], row["file"], row["position"], "", row["length"])


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
    records = list(_control_records(row))
    # Rows of frames hold the batches of one frame, rows of files one batch.
    is_file = row["request"] is None
    time = row["time_ns"] / _SECOND_NS if is_file and row["time_ns"] else None
    for each in row["extents"] or ():
        offsets = each["base_offset"], each["last_offset"], each["leader_epoch"]
        extent = Extent(*offsets, time, time, each["is_valid"])
        inside = tuple(r for r in records if extent.base_offset <= r[1] <= extent.last_offset)
        file = row["file"] if is_file else ""
        yield BatchRow(extent, inside, file, is_idle=bool(row["is_idle"]))


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
