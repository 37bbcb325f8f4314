"""Records of a metadata log that contradict the records before them.

The check is that of `kraftwire decode`: `kraftwire.controller.check`. It begins at offset 0 or with
a snapshot in the folder of the log, and goes on after a gap with what follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from kraftwire import messages
from kraftwire.controller.check import MetadataCheck
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.errors import KraftwireError
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.limits import LogBudget
from kraftwire.spark.logs.place import SNAPSHOT
from kraftwire.spark.stages.clusters import of_files
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables.columns import Column, Table

# Findings of one log; a log that is wrong in more places needs no longer list.
_FOUND_MAX = 1_000

# The value that tables have in place of a secret; no rule looks at it.
_HIDDEN = '"[redacted]"'

_COLUMNS = (
    "source", "file", "position", "base_offset", "last_offset", "count", "leader_epoch", "size",
    "codec", "records",
)  # fmt: skip

_FOUND = Table(
    "contradictions",
    "A record that cannot be applied.",
    (
        Column("file", "string", "its segment or snapshot"),
        Column("position", "bigint", "its batch there"),
        Column("time_ns", "bigint", "when it was written, nanoseconds since the epoch"),
        Column("wrong_epoch", "int", "the leader epoch of its batch"),
        Column("wrong_offset", "bigint", "its offset"),
        Column("wrong_record", "string", "what it says"),
        Column("wrong_state", "string", "what the records before it say"),
    ),
)


class _FolderCheck:
    """Checks the snapshots and the log of one folder.

    Order: the batches of all snapshots, one file after the other, then those of the log by offset.
    """

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._check, self._budget = MetadataCheck(), LogBudget()
        self._snapshot = ""
        # End offset -> the state there.
        self._states: dict[int, MetadataCheck] = {}

    def on_batch(self, row: dict[str, Any]) -> None:
        """Check the records of a batch."""
        if row["source"] == SNAPSHOT:
            self._begin_in_snapshot(row)
        else:
            self._begin_in_log(row)
        records = row["records"] or ()
        # JSON is longer than what it stands for, so uncompressed batches count as they are.
        is_packed = row["codec"] != "none"
        taken = sum(len(each["data"]) for each in records) if is_packed else row["size"]
        if len(records) != row["count"] or not self._budget.take(row["size"], taken):
            self._check.forget()  # a record could not be decoded, or too much would be kept
            return
        for record in records:
            self._on_record(row, record)

    def _begin_in_snapshot(self, row: dict[str, Any]) -> None:
        if row["file"] != self._snapshot:
            self._snapshot = row["file"]
            self._check, self._budget = MetadataCheck(in_snapshot=True), LogBudget()
        self._check.begin_batch(row["base_offset"], row["last_offset"])

    def _begin_in_log(self, row: dict[str, Any]) -> None:
        if self._snapshot:
            self._snapshot, self._check, self._budget = "", MetadataCheck(), LogBudget()
        offsets = row["base_offset"], row["last_offset"]
        self._check.begin_batch(*offsets)
        if not self._check.is_whole and offsets[0] in self._states:
            self._check = self._states.pop(offsets[0]).after_snapshot(offsets[0])
            self._check.begin_batch(*offsets)

    def _on_record(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        try:
            data = json.loads(record["data"].replace(_HIDDEN, '""'))
            message = messages.find(record["type"]).from_json(data, record["version"])
        except (KraftwireError, ValueError, KeyError):
            self._check.forget()
            return
        contradiction = self._check.check_record(record["offset"], message)
        if contradiction is not None and len(self.found) < _FOUND_MAX:
            self.found.append(
                {
                    "file": row["file"],
                    "position": row["position"],
                    "time_ns": record["time_ns"] or 0,
                    "wrong_epoch": row["leader_epoch"],
                    "wrong_offset": contradiction.offset,
                    "wrong_record": contradiction.record,
                    "wrong_state": contradiction.state,
                }
            )
        if record["type"] == "SnapshotFooterRecord" and self._snapshot and self._check.is_whole:
            end = parse_file_name(self._snapshot.rpartition("/")[2]).base_offset
            if end is not None:
                self._states[end] = self._check


def contradictions(tables: Tables) -> DataFrame:
    """Return the records that Kafka's controller cannot replay: there, each is a fatal fault."""
    place = ["file", "position"]
    time = (F.unix_micros("time") * 1000).alias("time_ns")
    record = F.struct("offset", "type", "version", "data", time)
    records = tables["metadata_records"].groupBy(*place).agg(
        F.sort_array(F.collect_list(record)).alias("records")
    )
    batches = tables["batches"].where(
        (F.col("topic") == METADATA_TOPIC) & F.col("is_valid") & (F.col("source") != "wire")
    )
    folder = F.regexp_extract("file", "^(.*)/[^/]*$", 1).alias("folder")
    rows = batches.join(records, place, "left").select(folder, *_COLUMNS)
    # Snapshots come first; the order survives the grouping, which orders only by folder.
    order = (F.col("folder"), F.col("source").desc(), F.when(F.col("source") == SNAPSHOT, F.col(
        "file"
    )), F.col("base_offset"))  # fmt: skip
    ordered = rows.repartition("folder").sortWithinPartitions(*order)
    checked = ordered.groupBy("folder").agg(_check_of(*_COLUMNS).alias("found"))
    return of_files(checked.select(F.inline("found")), tables)


@F.arrow_udf(returnType=ArrayType(_FOUND.spark))
def _check_of(batches: Iterator[tuple[pa.Array, ...]]) -> Any:
    """Yield the findings of one folder, from batches of its rows."""
    check = _FolderCheck()
    for arrays in batches:
        for row in pa.RecordBatch.from_arrays(list(arrays), list(_COLUMNS)).to_pylist():
            check.on_batch(row)
    return pa.scalar(check.found, pa.list_(pa.struct(list(_FOUND.arrow))))
