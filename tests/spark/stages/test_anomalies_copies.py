"""The rule about traffic that was captured twice: what it reports, and what it accepts."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from tests.spark.stages.finding import find
from tests.spark.stages.tables import SECOND, START

Rows = list[dict[str, Any]]


def _connection(file: str, begin: float = 0, end: float = 10, **more: Any) -> dict[str, Any]:
    first, last = (START + int(at * SECOND) for at in (begin, end))
    return {
        "file": file, "position": 24, "client": "c:1", "server": "s:9092", "protocol": "kafka",
        "first_time": first // 1000, "last_time": last // 1000, **more,
    }  # fmt: skip


def _exchanges(file: str, ids: range, shift: float = 0, **more: Any) -> Rows:
    return [
        {
            "file": file, "position": 100 + id, "client": "c:1", "server": "s:9092", "api_key": 3,
            "correlation_id": id, "time_ns": START + int((id + shift) * SECOND), **more,
        }
        for id in ids
    ]  # fmt: skip


def test_both_ends_of_a_connection(spark: SparkSession) -> None:
    """Only one end shows who opened it, and the clocks differ."""
    turned = {"client": "s:9092", "server": "c:1"}
    [row] = find(
        spark,
        "captured-twice",
        connections=[_connection("a.pcap"), _connection("b.pcap", 2, 13, **turned)],
        exchanges=_exchanges("a.pcap", range(8)) + _exchanges("b.pcap", range(2, 9), 3, **turned),
    )
    assert (row["severity"], row["file"], row["position"]) == ("warning", "a.pcap", 24)
    assert row["detail"] == "6 exchanges are in the recording of b.pcap too, and count twice"


def test_recordings_that_have_nothing_twice(spark: SparkSession) -> None:
    """Another connection of the same ends, later or with other exchanges; other protocols."""
    both = _exchanges("a.pcap", range(8)) + _exchanges("b.pcap", range(8))
    later = [_connection("a.pcap"), _connection("b.pcap", 100, 110)]
    assert not find(spark, "captured-twice", connections=later, exchanges=both)
    tls = [_connection(file, protocol="tls") for file in ("a.pcap", "b.pcap")]
    assert not find(spark, "captured-twice", connections=tls, exchanges=both)
    same = [_connection(file) for file in ("a.pcap", "b.pcap")]
    others = _exchanges("a.pcap", range(8)) + _exchanges("b.pcap", range(8, 16))
    assert not find(spark, "captured-twice", connections=same, exchanges=others)
    alone = [_connection("a.pcap"), _connection("a.pcap", position=77)]
    assert not find(spark, "captured-twice", connections=alone, exchanges=both)
