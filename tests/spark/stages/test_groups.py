"""Rebalances of groups, from what members ask and are told."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from kraftwire.messages import consumer_group_heartbeat_request as beat_request
from kraftwire.messages import consumer_group_heartbeat_response as beat_response
from kraftwire.messages import join_group_request as join_request
from kraftwire.messages import join_group_response as join_response
from kraftwire.messages import sync_group_request as sync_request
from kraftwire.messages import sync_group_response as sync_response
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.spark.stages import STAGES
from kraftwire.wire.message import Message
from tests.spark.stages.tables import SECOND, START, given, rows_of


def _row(
    seconds: float, took: float, asked: Message, told: Message, version: int
) -> dict[str, Any]:
    header = RequestHeader(
        request_api_key=asked.API_KEY, request_api_version=version, correlation_id=1
    )
    return {
        "time_ns": START + int(seconds * SECOND), "latency_ns": int(took * SECOND),
        "api_key": asked.API_KEY, "api_version": version, "position": int(seconds * 10),
        "request": header.encode(2) + asked.encode(version),
        "response": ResponseHeader(correlation_id=1).encode(1) + told.encode(version),
    }


def _join(
    seconds: float, member: str, generation: int, error: int = 0, reason: str | None = None
) -> dict[str, Any]:
    return _row(
        seconds, 2,
        join_request.JoinGroupRequest(group_id="g", member_id=member, reason=reason),
        join_response.JoinGroupResponse(
            generation_id=generation, member_id=member, error_code=error
        ),
        9,
    )


def _sync(seconds: float, member: str, generation: int) -> dict[str, Any]:
    return _row(
        seconds, 0.5,
        sync_request.SyncGroupRequest(group_id="g", member_id=member, generation_id=generation),
        sync_response.SyncGroupResponse(),
        5,
    )


def _beat(seconds: float, member: str, epoch: int) -> dict[str, Any]:
    return _row(
        seconds, 0,
        beat_request.ConsumerGroupHeartbeatRequest(group_id="new", member_id=member),
        beat_response.ConsumerGroupHeartbeatResponse(member_id=member, member_epoch=epoch),
        1,
    )


def _run(spark: SparkSession, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    found = rows_of(STAGES["groups"].make(given(spark, group_exchanges=list(rows))), "groups")
    return sorted(found, key=lambda row: (row["group_id"], row["generation"]))


def _seconds(row: dict[str, Any]) -> tuple[float, float]:
    return tuple(row[name].timestamp() - START // SECOND for name in ("start", "end"))  # type: ignore[return-value]


def test_generations_of_a_classic_group(spark: SparkSession) -> None:
    """From the first JoinGroup to the last answer to SyncGroup; refusals begin nothing."""
    first, second = _run(
        spark,
        _join(0, "a", -1, error=79),
        _join(1, "a", 1), _sync(3, "a", 1),
        _join(10, "a", 2), _join(11, "b", 2, reason="rejoins"), _sync(13, "a", 2),
        _sync(13.5, "b", 2),
    )
    assert (first["members"], _seconds(first), first["position"]) == (1, (1.0, 3.5), 10)
    assert (second["members"], _seconds(second), second["reason"]) == (2, (10.0, 14.0), "rejoins")
    assert {row["protocol"] for row in (first, second)} == {"classic"}


def test_epochs_of_a_consumer_group(spark: SparkSession) -> None:
    """From the first member that learns of an epoch to the last; repeats do not lengthen it."""
    rows = _run(
        spark,
        _beat(0, "a", 1), _beat(5, "a", 1), _beat(9, "a", 2), _beat(12, "b", 2), _beat(20, "b", 2),
        _beat(21, "b", -1),
    )
    assert [(row["generation"], row["members"], _seconds(row)) for row in rows] == [
        (1, 1, (0.0, 0.0)), (2, 2, (9.0, 12.0)),
    ]
    assert {row["protocol"] for row in rows} == {"consumer"}


def test_a_rebalance_does_not_last_into_the_next_capture(spark: SparkSession) -> None:
    """A member that is seen there for the first time was in the group before."""
    files = [
        {"kind": "capture", "recorded": [{"first_ns": first, "last_ns": first + 10 * SECOND}]}
        for first in (START, START + 5000 * SECOND)
    ]
    beats = [_beat(1, "a", 3), _beat(2, "b", 3), _beat(5001, "c", 3)]
    tables = given(spark, files=files, group_exchanges=beats)
    (row,) = rows_of(STAGES["groups"].make(tables), "groups")
    assert (row["end"] - row["start"]).total_seconds() == 1
    assert row["members"] == 2
