"""Rules about clients, logs and groups: what they report, and what they accept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.stages.finding import find
from tests.spark.stages.tables import SECOND, START

BEGIN = datetime.fromtimestamp(START // SECOND, UTC)


def _fetches(count: int, seconds: float, bytes: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "time_ns": START + int(index * seconds * SECOND / count), "kind": "fetch",
            "client_id": "c", "server": "s:1", "topic": "t", "partition": 0, "bytes": bytes,
            "position": index, **more,
        }
        for index in range(count)
    ]


def test_a_fetch_storm(spark: SparkSession) -> None:
    """Sixty empty Fetches in a second, two seconds long, are one storm."""
    [row] = find(spark, "fetch-storm", partition_traffic=_fetches(120, 2))
    assert (row["node"], row["severity"], row["position"]) == ("c", "warning", 0)
    assert row["detail"] == "120 Fetches from s:1 brought nothing, up to 60 in a second"


def test_fetches_that_are_not_a_storm(spark: SparkSession) -> None:
    """As many that bring data; one of many partitions; 49 a second; those of two clients."""
    many = [{**_fetches(1, 1)[0], "partition": each} for each in range(99)]
    assert not find(spark, "fetch-storm", partition_traffic=_fetches(120, 2, bytes=1))
    assert not find(spark, "fetch-storm", partition_traffic=many)
    two = _fetches(49, 1) + _fetches(49, 1, client_id="d")
    assert not find(spark, "fetch-storm", partition_traffic=two)


def test_a_follower_under_load_is_not_a_storm(spark: SparkSession) -> None:
    """After each answer with records it fetches once more, for the new high watermark."""
    rows = _fetches(120, 1) + _fetches(110, 1, bytes=1, topic="u")
    other = [{**row, "position": row["position"] + 1000} for row in rows[120:]]
    assert not find(spark, "fetch-storm", partition_traffic=rows[:120] + other)


def _exchange(seconds: float, latency: float, **more: Any) -> dict[str, Any]:
    return {
        "time_ns": START + int(seconds * SECOND), "latency_ns": int(latency * SECOND),
        "api_key": 0, "api_name": "Produce", "client_id": "c", "server": "s:1",
        "position": int(seconds * 10), **more,
    }


def test_slow_produce(spark: SparkSession) -> None:
    """Slow writes in a row are one finding; the evidence is the slowest of them."""
    rows = [_exchange(0, 1.0), _exchange(1, 2.5), _exchange(30, 20)]
    soon, late = find(spark, "slow-produce", exchanges=rows)
    assert (soon["severity"], soon["position"], late["severity"]) == ("warning", 10, "error")
    assert soon["detail"] == (
        "2 Produce requests to s:1 took a second or more, the longest 2.5 s"
    )
    assert late["detail"].startswith("1 Produce request to s:1 took a second or more")
    assert soon["end_time"] == BEGIN + timedelta(seconds=3.5)


def test_what_is_not_a_slow_produce(spark: SparkSession) -> None:
    """Just below a second; a Fetch; one without an answer."""
    rows = [
        _exchange(0, 0.999), _exchange(1, 30, api_key=1), {**_exchange(2, 0), "latency_ns": None},
    ]
    assert not find(spark, "slow-produce", exchanges=rows)


@pytest.mark.parametrize(("count", "pause", "found"), [(20, 1.0, 1), (19, 1.0, 0), (20, 3.0, 0)])
def test_a_retry_storm(spark: SparkSession, count: int, pause: float, found: int) -> None:
    """Twenty refusals without a pause of two seconds."""
    rows = [
        _exchange(at * pause, 0.01, errors=["NOT_LEADER_OR_FOLLOWER"]) for at in range(count)
    ]
    rows.append(_exchange(5, 0.01, errors=[]))
    assert len(find(spark, "retry-storm", exchanges=rows)) == found


def test_waiting_is_not_a_retry_storm(spark: SparkSession) -> None:
    """A transaction that has to wait for the end of the previous one retries every 20 ms."""
    rows = [_exchange(at / 50, 0.01, errors=["CONCURRENT_TRANSACTIONS"]) for at in range(60)]
    assert not find(spark, "retry-storm", exchanges=rows)


def _batch(folder: str, offset: int, **more: Any) -> dict[str, Any]:
    return {
        "file": f"{folder}/t-0/0.log", "position": offset * 100, "topic": "t", "partition": 0,
        "source": "log", "base_offset": offset, "last_offset": offset, "count": 1, "crc": offset,
        "leader_epoch": 1, "is_valid": True, "max_timestamp": BEGIN, **more,
    }


def test_crc_errors(spark: SparkSession) -> None:
    """One finding for each file, at its first bad batch."""
    rows = [_batch("a", n, is_valid=n == 0) for n in range(4)]
    [row] = find(spark, "crc-error", batches=rows)
    assert (row["node"], row["file"], row["position"]) == ("t-0", "a/t-0/0.log", 100)
    assert row["detail"] == "3 batches fail their CRC, the first at offset 1"
    [row] = find(spark, "crc-error", batches=rows[:2])
    assert row["detail"] == "1 batch fails its CRC, the first at offset 1"


def test_good_batches(spark: SparkSession) -> None:
    """They have no errors."""
    assert not find(spark, "crc-error", batches=[_batch("a", n) for n in range(4)])


def test_diverging_logs(spark: SparkSession) -> None:
    """The same bytes up to an offset, different ones of another epoch after it."""
    rows = [_batch("a", n) for n in range(4)]
    rows += [_batch("b", n) for n in range(2)]
    rows += [_batch("b", n, leader_epoch=2, crc=70 + n) for n in range(2, 4)]
    [row] = find(spark, "diverging-logs", batches=rows)
    assert (row["epoch"], row["node"], row["file"], row["position"]) == (
        2, "t-0", "b/t-0/0.log", 200,
    )
    assert row["detail"] == (
        "replicas differ from offset 2 on, in 2 batches: a/t-0 (epoch 1), b/t-0 (epoch 2); "
        "the older epoch is the end of a log that is to be truncated"
    )
    assert row["severity"] == "warning"


@pytest.mark.parametrize(
    "more",
    [{"leader_epoch": 1, "crc": 99}, {"leader_epoch": 2, "crc": 99}],
    ids=["two histories of one epoch", "went on in a newer epoch"],
)
def test_logs_that_no_truncation_repairs(spark: SparkSession, more: dict[str, Any]) -> None:
    """One epoch with two histories; a log that continued after what it should have truncated."""
    rows = [_batch("a", 0), _batch("a", 1), _batch("a", 2, leader_epoch=3)]
    rows += [_batch("b", 0), _batch("b", 1, **more), _batch("b", 2, leader_epoch=3)]
    [row] = find(spark, "diverging-logs", batches=rows)
    assert row["severity"] == "error"
    assert row["detail"].startswith("replicas differ from offset 1 on, in 1 batch: a/t-0")
    assert "truncated" not in row["detail"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"count": 0, "crc": 99},
        {"is_valid": False, "crc": 99},
        {"source": "wire", "crc": 99},
        {"partition": 1, "crc": 99},
    ],
    ids=["equal", "cleaned", "damaged", "on the wire", "another partition"],
)
def test_logs_that_do_not_diverge(spark: SparkSession, more: dict[str, Any]) -> None:
    """What a second directory may hold without being another history."""
    assert not find(spark, "diverging-logs", batches=[_batch("a", 1), _batch("b", 1, **more)])


@pytest.mark.parametrize(("count", "pause", "found"), [(5, 10, 1), (4, 10, 0), (8, 60, 0)])
def test_a_rebalance_storm(spark: SparkSession, count: int, pause: int, found: int) -> None:
    """Five generations without a pause of 45 seconds, of two members."""
    rows = [
        {
            "group_id": "g", "protocol": "classic", "generation": n + 1, "members": 2,
            "start": BEGIN + timedelta(seconds=n * pause),
            "end": BEGIN + timedelta(seconds=n * pause + 3), "reason": None if n else "hello",
        }
        for n in range(count)
    ]
    storms = find(spark, "rebalance-storm", groups=rows)
    assert len(storms) == found
    assert not find(spark, "rebalance-storm", groups=[{**row, "members": 4} for row in rows])
    for row in storms:
        assert row["node"] == "g"
        assert row["detail"] == (
            "5 rebalances from generation 1 to 5, the reason given is: hello"
        )
