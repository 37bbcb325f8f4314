"""Kafka's own controllers as the source of `format("kraft-metadata")`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kraftwire.client.metadata_log import Position, QuorumReader
from kraftwire.errors import LogMovedError
from kraftwire.spark.logs import decode_tables
from kraftwire.spark.sources.metadata import MetadataDataSource
from tests.support.kafka.process import quorum

PROPERTIES = {
    "metadata.log.max.snapshot.interval.ms": 3000,
    "metadata.max.idle.interval.ms": 100,
}
PATIENCE_S = 60


def _rows(reader: Any, partitions: Any) -> list[dict[str, Any]]:
    return [
        row
        for partition in partitions
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_a_quorum_of_kafkas_is_read_like_ours(tmp_path: Path) -> None:
    """The whole log while there is no snapshot, then both; a log that moved is refused."""
    with quorum(tmp_path, 1, properties=PROPERTIES) as cluster:
        one = MetadataDataSource({"bootstrapControllers": cluster.bootstrap_controllers})
        reader = one.streamReader(one.schema())
        start: dict[str, int] = {"epoch": 0, "nextOffset": 0}
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < 40:
            assert time.monotonic() < deadline, f"{len(found)} records in time"
            reached = reader.latestOffset(start, ReadMaxRows(9))
            if reached != start:
                found += _rows(reader, reader.partitions(start, reached))
            start = reached
        logged = [row for row in found if row["file"] == "__cluster_metadata-0"]
        assert [row["offset"] for row in logged] == list(
            range(logged[0]["offset"], start["nextOffset"])
        )
        stored = {}
        for path in cluster.controllers[0].log_dir.rglob("__cluster_metadata-0/*.log"):
            for row in decode_tables(path)["metadata_records"].to_pylist():
                stored[row["offset"]] = (row["epoch"], row["type"], row["data"])
        assert [(row["epoch"], row["type"], row["data"]) for row in logged] == [
            stored[row["offset"]] for row in logged
        ]
        with QuorumReader(cluster.bootstrap_controllers, patience_s=20) as quorum_reader:
            while quorum_reader.begin()[1] is None:
                assert time.monotonic() < deadline, "no snapshot in time"
                time.sleep(0.2)
            with pytest.raises(LogMovedError, match="it was truncated before offset"):
                quorum_reader.high_watermark(Position(start["epoch"], 10**6))
        batch_reader = one.reader(one.schema())
        again = _rows(batch_reader, batch_reader.partitions())
        types = [row["type"] for row in again if row["file"].endswith(".checkpoint")]
        assert (types[0], types[-1]) == ("SnapshotHeaderRecord", "SnapshotFooterRecord")
        assert reader.latestOffset(start, ReadAllAvailable())["nextOffset"] >= start["nextOffset"]
