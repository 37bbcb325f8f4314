"""Lag of replicas and of groups, and partitions: from rows of traffic."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from kraftwire.messages import offset_commit_request as request
from kraftwire.messages import offset_commit_response as response
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.spark.stages import STAGES
from tests.spark.stages.tables import SECOND, START, Rows, given, rows_of

_COMMIT, _VERSION = request.OffsetCommitRequest.API_KEY, 9


def _run(spark: SparkSession, stage: str, **rows: Rows) -> Rows:
    return rows_of(STAGES[stage].make(given(spark, **rows)), stage)


def _at(row: dict[str, Any]) -> int:
    return int(row["bucket"].timestamp()) - START // SECOND


def _observed(seconds: float, replica: int, offset: int, **more: Any) -> dict[str, Any]:
    return {
        "time_ns": START + int(seconds * SECOND), "position": int(seconds * 100), "cluster": "c",
        "replica_id": replica, "leader_id": 1, "leader_epoch": 1, "fetch_offset": offset,
        "source": "fetch", **more,
    }


def test_replicas_fall_behind_and_catch_up(spark: SparkSession) -> None:
    """Replica 3 is at 10 while replica 2 shows an end of 14, then catches up."""
    rows = _run(
        spark, "replica_lag",
        quorum_observations=[
            _observed(0, 2, 10, log_end_offset=10, high_watermark=10),
            _observed(0, 3, 10, log_end_offset=10, high_watermark=10),
            _observed(1, 2, 14, high_watermark=10),
            _observed(2, 3, 10, high_watermark=10),
            _observed(4, 3, 14, high_watermark=14),
        ],
    )
    third = {_at(row): (row["lag_max"], row["behind_ms"]) for row in rows if row["replica_id"] == 3}
    assert third == {0: (0, 0.0), 2: (4, 2000.0), 4: (0, 0.0)}
    assert {row["topic"] for row in rows} == {"__cluster_metadata"}


def test_a_replica_that_does_not_fetch_has_no_lag(spark: SparkSession) -> None:
    """A replica that leads from second 2 on has no row for its time as leader."""
    rows = _run(
        spark, "replica_lag",
        quorum_observations=[
            _observed(0, 2, 10, log_end_offset=10),
            *[_observed(at, 3, 10 + at, leader_id=2, log_end_offset=10 + at) for at in range(1, 9)],
        ],
    )
    assert [_at(row) for row in rows if row["replica_id"] == 2] == [0]


def test_an_answer_counts_from_its_arrival(spark: SparkSession) -> None:
    """A Fetch that waits two seconds for a record has no lag when it asks."""
    rows = _run(
        spark, "replica_lag",
        quorum_observations=[_observed(0, 2, 10, log_end_offset=11), _observed(1, 3, 10)],
        exchanges=[
            {"time_ns": START, "position": 0, "latency_ns": 2 * SECOND},
            {"time_ns": START + SECOND, "position": 100, "latency_ns": SECOND},
        ],
    )
    assert [row["lag_max"] for row in rows] == [0, 0]


def test_records_that_an_epoch_loses_are_not_lag(spark: SparkSession) -> None:
    """Epoch 1 showed an end of 20, of which only 12 were committed."""
    rows = _run(
        spark, "replica_lag",
        quorum_observations=[
            _observed(0, 2, 20, log_end_offset=20, high_watermark=12),
            _observed(5, 3, 12, leader_epoch=2, high_watermark=12, log_end_offset=12),
        ],
    )
    assert [row["lag_max"] for row in rows if row["replica_id"] == 3] == [0]


def _traffic(seconds: float, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "time_ns": START + int(seconds * SECOND), "position": int(seconds * 100), "kind": kind,
        "topic": "t", "partition": 0, "server": "s:1", "replica_id": -1, "error_code": 0, **more,
    }


def test_replicas_of_a_topic(spark: SparkSession) -> None:
    """A client's produce shows an end too, although it names the topic and the replica its id."""
    rows = _run(
        spark, "replica_lag",
        partition_traffic=[
            _traffic(0, "produce", offset=5, records=3),
            _traffic(1, "replica-fetch", replica_id=4, offset=5, topic_id="id", high_watermark=5),
        ],
    )
    assert [(row["topic"], row["topic_id"], row["lag_max"]) for row in rows] == [("t", "id", 3)]


def _commit(seconds: float, offset: int, error: int = 0) -> dict[str, Any]:
    asked = request.OffsetCommitRequest(
        group_id="g", member_id="m",
        topics=[
            request.OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    request.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=offset
                    )
                ],
            )
        ],
    )
    told = response.OffsetCommitResponse(
        topics=[
            response.OffsetCommitResponseTopic(
                name="t",
                partitions=[
                    response.OffsetCommitResponsePartition(partition_index=0, error_code=error)
                ],
            )
        ]
    )
    header = RequestHeader(
        request_api_key=_COMMIT, request_api_version=_VERSION, correlation_id=1, client_id="c"
    )
    return {
        "time_ns": START + int(seconds * SECOND), "latency_ns": 1000, "api_key": _COMMIT,
        "api_version": _VERSION, "request": header.encode(2) + asked.encode(_VERSION),
        "response": ResponseHeader(correlation_id=1).encode(1) + told.encode(_VERSION),
    }


def test_a_group_falls_behind_without_committing(spark: SparkSession) -> None:
    """Its lag grows with the end of the partition; a refused commit changes nothing."""
    rows = _run(
        spark, "group_lag",
        group_exchanges=[_commit(1, 5), _commit(3, 9, error=25), _commit(6, 12)],
        partition_traffic=[
            _traffic(0, "fetch", high_watermark=5),
            _traffic(4, "fetch", high_watermark=12),
            _traffic(5, "fetch", high_watermark=12),
        ],
    )
    assert [(_at(r), r["committed"], r["end_offset"], r["lag"]) for r in rows] == [
        (1, 5, 5, 0), (4, 5, 12, 7), (6, 12, 12, 0),
    ]


def test_the_age_of_what_is_not_committed(spark: SparkSession) -> None:
    """The first record that is not committed was written two seconds before the commit."""
    written = (START + 2 * SECOND) // 1000
    rows = _run(
        spark, "group_lag",
        group_exchanges=[_commit(3, 5)],
        partition_traffic=[
            _traffic(0, "produce", offset=0, records=5, first_timestamp=START // 1000),
            _traffic(2, "produce", offset=5, records=5, first_timestamp=written),
            _traffic(3, "fetch", high_watermark=10),
        ],
    )
    # The second of the row ends at four.
    assert [(row["lag"], row["behind_ms"]) for row in rows] == [(5, 2000.0)]


# Two captures, of the seconds 0 to 10 and 5,000 to 5,010.
_TWO = [
    {"kind": "capture", "recorded": [{"first_ns": first, "last_ns": first + 10 * SECOND}]}
    for first in (START, START + 5000 * SECOND)
]


def test_a_commit_does_not_hold_while_nothing_is_recorded(spark: SparkSession) -> None:
    """The group may have committed unseen; its lag is known with the first commit after that."""
    rows = _run(
        spark, "group_lag", files=_TWO,
        group_exchanges=[_commit(1, 5), _commit(5003, 90)],
        partition_traffic=[
            _traffic(0, "fetch", high_watermark=5),
            _traffic(4, "fetch", high_watermark=12),
            _traffic(5001, "fetch", high_watermark=100),
        ],
    )
    assert [(_at(r), r["committed"], r["end_offset"], r["lag"]) for r in rows] == [
        (1, 5, 5, 0), (4, 5, 12, 7), (5003, 90, 100, 10),
    ]


def test_a_replica_is_not_behind_since_the_capture_before(spark: SparkSession) -> None:
    """It may have caught up unseen."""
    rows = _run(
        spark, "replica_lag", files=_TWO,
        quorum_observations=[
            _observed(0, 3, 10, log_end_offset=10, high_watermark=10),
            _observed(5000, 2, 90, log_end_offset=90, high_watermark=90),
            _observed(5001, 3, 80, high_watermark=90),
        ],
    )
    third = {_at(row): (row["lag_max"], row["behind_ms"]) for row in rows if row["replica_id"] == 3}
    assert third == {0: (0, 0.0), 5001: (10, None)}


def test_no_lag_without_an_end(spark: SparkSession) -> None:
    """A commit alone does not say how far the group is behind."""
    [row] = _run(spark, "group_lag", group_exchanges=[_commit(3, 5)])
    assert (row["committed"], row["end_offset"], row["lag"]) == (5, None, None)


def test_partitions_of_traffic(spark: SparkSession) -> None:
    """Sums, the last server, and each partition's share of its topic."""
    rows = _run(
        spark, "partitions",
        partition_traffic=[
            _traffic(0, "produce", bytes=300, records=3),
            _traffic(1, "produce", bytes=999, records=9, error_code=6, server="s:9"),
            _traffic(1, "produce", bytes=100, records=1, partition=1),
            _traffic(2, "fetch", bytes=50, server="s:2", high_watermark=4, topic_id="id"),
        ],
    )
    first, second = sorted(rows, key=lambda row: row["partition"])
    assert first == {
        "cluster": None, "topic": "t",
        "topic_id": "id", "partition": 0, "leader": "s:2", "leader_epoch": None,
        "produced_bytes": 300, "produced_records": 3, "fetched_bytes": 50, "high_watermark": 4,
        "share": 0.75,
    }
    assert (second["share"], second["leader"]) == (0.25, "s:1")


def test_partitions_of_log_directories(spark: SparkSession) -> None:
    """The copies of two replicas are one partition, as large as the larger one."""
    batch = {"topic": "t", "partition": 0, "source": "log", "is_valid": True, "count": 1}
    [row] = _run(
        spark, "partitions",
        batches=[
            {**batch, "file": "a/t-0/0.log", "size": 100},
            {**batch, "file": "b/t-0/0.log", "size": 100},
            {**batch, "file": "b/t-0/9.log", "size": 50},
        ],
    )
    assert (row["produced_bytes"], row["produced_records"], row["share"]) == (150, 2, 1.0)
