"""Two clusters in one folder: no fact about one is reported for the other."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kraftwire.messages import metadata_response
from kraftwire.spark.captures import decode_tables
from kraftwire.spark.captures.shared_names import NameGatherer, PacketDirection
from kraftwire.spark.logs import decode_tables as log_tables
from kraftwire.spark.run import LocalRunner, RunOptions, SparkRunner, run
from kraftwire.spark.stages import STAGES, Tables
from kraftwire.spark.stages.clusters import with_cluster
from tests.spark.run.folders import rows_of as written
from tests.spark.stages.finding import find
from tests.spark.stages.tables import START, Rows, derived, given, rows_of
from tests.support.captures.decoded import golden

# That of the golden quorum, and another one of the same length.
CLUSTER = b"9CIbsF9FQuGtwD837BRpPA"
OTHER = b"AnotherCluster-another"


def _names(*servers: tuple[str, str | None, str | None]) -> Rows:
    """Connections to servers: file, server and cluster."""
    return [
        {"file": file, "server": server, "cluster": cluster, "frames": 1}
        for file, server, cluster in servers
    ]


def _told(spark: SparkSession, **rows: Rows) -> Tables:
    """Tables that a test writes, with the clusters that they name."""
    return derived(spark, given(spark, **rows), "clusters")


def test_one_that_names_a_cluster_names_it_for_others(spark: SparkSession) -> None:
    """For the server in the same file, the server elsewhere, the file, otherwise for none."""
    rows = [
        {"file": file, "server": server, "position": at}
        for at, (file, server) in enumerate(
            [("x", "s1"), ("y", "s1"), ("z", "s1"), ("z", "s2"), ("y", "s9"), ("q", "s9")]
        )
    ]
    tables = _told(
        spark, partition_traffic=rows, exchanges=rows,
        connections=_names(
            ("x", "s1", "a"), ("y", "s1", "b"), ("y", "s2", None), ("x", "s2", "a"),
            ("x", "s3", "b"),
        ),
    )  # fmt: skip
    told = with_cluster(tables["partition_traffic"], tables).collect()
    assert {row["position"]: row["cluster"] for row in told} == {
        0: "a", 1: "b", 2: None, 3: "a", 4: "b", 5: None,
    }  # fmt: skip
    files = [{"file": "m", "kind": "log", "cluster": "a"}]
    tables = _told(spark, partition_traffic=rows, exchanges=rows, files=files)
    told = with_cluster(tables["partition_traffic"], tables).collect()
    assert {row["cluster"] for row in told} == {"a"}


def _two(**more: Any) -> Rows:
    """A row for each of two clusters on one address, captured apart."""
    return [{"file": file, "server": "s", "topic": "t", "partition": 0, **more} for file in "xy"]


TWO = _names(("x", "s", "a"), ("y", "s", "b"))


def test_lag_is_that_of_one_cluster(spark: SparkSession) -> None:
    """Each has its own log end; the later one of the other cluster must not count."""
    near, far = 10, 1000
    fetches, exchanges = [], []
    for number, (row, end) in enumerate(zip(_two(), (near, far), strict=True)):
        fetches.append(
            row | {
                "kind": "replica-fetch", "time_ns": START, "replica_id": 2, "offset": end,
                "high_watermark": end, "leader_epoch": 1, "position": number,
            }
        )  # fmt: skip
        exchanges.append({key: row[key] for key in ("file", "server")} | {"position": number})
    tables = _told(spark, partition_traffic=fetches, exchanges=exchanges, connections=TWO)
    rows = rows_of(STAGES["replica_lag"].make(tables), "replica_lag")
    assert sorted((row["cluster"], row["lag_max"]) for row in rows) == [("a", 0), ("b", 0)]
    rows = rows_of(STAGES["partitions"].make(tables), "partitions")
    assert sorted((row["cluster"], row["high_watermark"]) for row in rows) == [
        ("a", near), ("b", far),
    ]  # fmt: skip


def _log(folder: str, epoch: int) -> dict[str, Any]:
    return {
        "file": f"{folder}/t-0/0.log", "position": 0, "topic": "t", "partition": 0,
        "source": "log", "base_offset": 0, "last_offset": 4, "count": 5, "size": 100,
        "leader_epoch": epoch, "crc": epoch, "is_valid": True,
    }  # fmt: skip


def test_logs_of_two_clusters_do_not_diverge(spark: SparkSession) -> None:
    """Only replicas of one cluster are compared."""
    batches = [_log("c1", 1), _log("c2", 2)]
    names = [str(batch["file"]) for batch in batches]
    alone = [{"file": name, "cluster": name[:2]} for name in names]
    assert find(spark, "diverging-logs", batches=batches, clusters=alone) == []
    together = [{"file": name, "cluster": "c"} for name in names]
    assert len(find(spark, "diverging-logs", batches=batches, clusters=together)) == 1
    made = STAGES["partitions"].make(given(spark, batches=batches, clusters=alone))
    rows = rows_of(made, "partitions")
    assert sorted((row["cluster"], row["leader_epoch"]) for row in rows) == [("c1", 1), ("c2", 2)]


def _quorums(folder: Path) -> Path:
    """The golden quorum twice, once under another name: the same hosts, times and offsets."""
    raw = lzma.decompress(golden("quorum").read_bytes())
    assert CLUSTER in raw
    for name, data in (("this", raw), ("that", raw.replace(CLUSTER, OTHER))):
        (folder / name).mkdir(parents=True)
        (folder / name / "quorum.pcap").write_bytes(data)
    return folder


def test_two_quorums_in_one_folder(spark: SparkSession, tmp_path: Path) -> None:
    """Every table has the same for both."""
    source, folder = _quorums(tmp_path / "in"), tmp_path / "out"
    names = ("raft_timeline", "replica_lag", "partitions", "anomalies")
    run([str(source)], RunOptions(folder, tables=names), SparkRunner(spark), warn=lambda _: None)
    for name in names[:-1]:
        told: dict[str, list[str]] = {}
        for row in written(folder, name):
            told.setdefault(row["cluster"], []).append(_plain(row))
        this, that = (sorted(told.pop(each.decode(), [])) for each in (CLUSTER, OTHER))
        assert this == that, name
        assert not told
    assert {"diverging-logs", "two-leaders", "high-watermark-back"}.isdisjoint(
        row["rule"] for row in written(folder, "anomalies")
    )
    assert written(folder, "raft_timeline")
    assert written(folder, "replica_lag")


def _plain(row: dict[str, Any]) -> str:
    return repr({key: value for key, value in row.items() if key not in ("cluster", "file")})


def test_connections_name_their_cluster() -> None:
    """By their own frames, or by the lists of brokers in others."""
    rows = decode_tables(golden("clients"), tables=["connections"])["connections"].to_pylist()
    kafka = [row for row in rows if row["protocol"] == "kafka" and row["frames"]]
    assert {row["cluster"] for row in kafka} - {None}
    response = metadata_response.MetadataResponse(
        cluster_id="c",
        brokers=[
            metadata_response.MetadataResponseBroker(node_id=1, host="10.0.0.1", port=9092),
            metadata_response.MetadataResponseBroker(node_id=2, host="fe80::1", port=9093),
        ],
    )
    gatherer = NameGatherer()
    asked, told = PacketDirection(1), PacketDirection(1)
    asked.other, told.other = told, asked
    request = (14).to_bytes(4, "big") + bytes([0, 3, 0, 9, 0, 0, 0, 7]) + bytes(6)
    gatherer.read_packet(asked, 0, request, 0, len(request))
    body = (7).to_bytes(4, "big") + b"\0" + response.encode(9)
    frame = len(body).to_bytes(4, "big") + body
    gatherer.read_packet(told, 0, frame, 0, len(frame))
    assert gatherer.names.clusters == {"10.0.0.1:9092": "c", "[fe80::1]:9093": "c"}


def test_files_of_a_log_directory_name_their_cluster(tmp_path: Path) -> None:
    """By its meta.properties, wherever in the directory they are."""
    log = tmp_path / "data" / "t-0" / "00000000000000000000.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"")
    meta = tmp_path / "data" / "meta.properties"
    assert log_tables(log)["files"].to_pylist()[0]["cluster"] is None
    meta.write_text("version=1\ncluster.id=my-cluster\nnode.id=1\n")
    for path in (log, meta):
        assert log_tables(path)["files"].to_pylist()[0]["cluster"] == "my-cluster"
    options = RunOptions(tmp_path / "out", tables=("files",))
    run([str(tmp_path / "data")], options, LocalRunner(), warn=lambda _: None)
    assert {row["cluster"] for row in written(tmp_path / "out", "files")} == {"my-cluster"}
