"""Rebalances of groups: a row for each generation that members reached, from their exchanges.

In a classic group, a rebalance lasts from the first JoinGroup of a generation to the last response
to SyncGroup. The other protocols have no rounds: there it lasts from the first member that learns
of an epoch to the last. Bodies are decoded on the executors, one Arrow batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from kraftwire.decode.body.bodies import decode_payload
from kraftwire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftwire.messages.join_group_request import JoinGroupRequest
from kraftwire.messages.offset_commit_request import OffsetCommitRequest
from kraftwire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftwire.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kraftwire.messages.sync_group_request import SyncGroupRequest
from kraftwire.spark.stages.clusters import with_cluster
from kraftwire.spark.stages.keys import evidence
from kraftwire.spark.stages.recorded import with_part
from kraftwire.spark.stages.stage import Tables
from kraftwire.spark.tables.columns import Column, Table
from kraftwire.wire.json_form import uuid_to_text

FACTS = Table(
    "group_facts",
    "What a member of a group requested, and the result.",
    (
        Column("kind", "string", "join, sync, heartbeat or commit"),
        Column("protocol", "string", "classic, consumer, share or streams; null for a commit"),
        Column("group_id", "string", "the group"),
        Column("member_id", "string", "the member"),
        Column("generation", "int", "generation or epoch in the answer"),
        Column("error_code", "smallint", "error code of the answer"),
        Column("reason", "string", "why the member joins, as it says"),
        Column("topic", "string", "topic of a commit"),
        Column("topic_id", "string", "its id"),
        Column("partition", "int", "its partition"),
        Column("offset", "bigint", "the offset"),
    ),
)

_NO_ID = bytes(16)
_Facts = Iterator[dict[str, Any]]

_KEYS = ("cluster", "group_id", "protocol", "generation")


def group_facts(exchanges: DataFrame) -> DataFrame:
    """Return the facts in the table `group_exchanges`; exchanges without a response have none.

    The columns of `FACTS`, file, position and server of the request, and the times of
    request and answer in nanoseconds since the epoch, `time_ns` and `end_ns`.
    """
    whole = exchanges.where("request is not null and response is not null")
    facts = _read("api_key", "api_version", "request", "response")
    end = F.col("time_ns") + F.coalesce("latency_ns", F.lit(0))
    before = ("file", "position", "server", "time_ns", "end_ns")
    server = F.substring_index("connection", "-", -1)
    placed = whole.withColumns({"server": server, "end_ns": end, "facts": facts})
    return placed.select(*before, F.inline("facts"))


@F.arrow_udf(returnType=ArrayType(FACTS.spark))
def _read(keys: pa.Array, versions: pa.Array, requests: pa.Array, responses: pa.Array) -> pa.Array:
    columns = (keys, versions, requests, responses)
    rows = zip(*(each.to_pylist() for each in columns), strict=True)
    facts = [list(_facts((key, version), *payloads)) for key, version, *payloads in rows]
    return pa.array(facts, pa.list_(pa.struct(list(FACTS.arrow))))


def _facts(api: tuple[int, int], request: bytes, response: bytes) -> _Facts:
    read = _READERS.get(api[0])
    if read is None:
        return
    request_body = decode_payload(request, is_request=True, api=api).body
    response_body = decode_payload(response, is_request=False, api=api).body
    if request_body is not None and response_body is not None:
        yield from read(request_body, response_body)


def _join(request: Any, response: Any) -> _Facts:
    yield {
        "kind": "join",
        "protocol": "classic",
        "group_id": request.group_id,
        "member_id": response.member_id or request.member_id,
        "generation": response.generation_id,
        "error_code": response.error_code,
        "reason": request.reason or None,
    }


def _sync(request: Any, response: Any) -> _Facts:
    yield {
        "kind": "sync",
        "protocol": "classic",
        "group_id": request.group_id,
        "member_id": request.member_id,
        "generation": request.generation_id,
        "error_code": response.error_code,
    }


def _heartbeat(protocol: str) -> Callable[[Any, Any], _Facts]:
    def read(request: Any, response: Any) -> _Facts:
        yield {
            "kind": "heartbeat",
            "protocol": protocol,
            "group_id": request.group_id,
            "member_id": response.member_id or request.member_id,
            "generation": response.member_epoch,
            "error_code": response.error_code,
        }

    return read


def _commit(request: Any, response: Any) -> _Facts:
    errors = {
        (topic.name, topic.topic_id, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }
    for topic in request.topics:
        for each in topic.partitions:
            yield {
                "kind": "commit",
                "group_id": request.group_id,
                "member_id": request.member_id,
                "error_code": errors.get((topic.name, topic.topic_id, each.partition_index)),
                "topic": topic.name or None,
                "topic_id": uuid_to_text(topic.topic_id) if topic.topic_id != _NO_ID else None,
                "partition": each.partition_index,
                "offset": each.committed_offset,
            }


_READERS: Mapping[int, Callable[[Any, Any], _Facts]] = {
    ConsumerGroupHeartbeatRequest.API_KEY: _heartbeat("consumer"),
    JoinGroupRequest.API_KEY: _join,
    OffsetCommitRequest.API_KEY: _commit,
    ShareGroupHeartbeatRequest.API_KEY: _heartbeat("share"),
    StreamsGroupHeartbeatRequest.API_KEY: _heartbeat("streams"),
    SyncGroupRequest.API_KEY: _sync,
}


def groups(tables: Tables) -> DataFrame:
    """Return one row for each generation or epoch of a group."""
    facts = with_cluster(group_facts(tables["group_exchanges"]), tables).where(
        "kind <> 'commit' and error_code = 0 and generation > 0"
    )
    # Members that are first seen after a gap in the recording took no part in the rebalance before.
    facts = with_part(facts, tables, F.col("time_ns"))
    facts = facts.withColumn("_first", F.min("part").over(Window.partitionBy(*_KEYS)))
    facts = facts.where("part = _first")
    # A member that repeats its epoch takes part once, with its first heartbeat.
    first = facts.groupBy(*_KEYS, "member_id", "kind").agg(
        F.min("time_ns").alias("time_ns"),
        F.min("end_ns").alias("end_ns"),
        F.min_by("reason", "time_ns").alias("reason"),
        F.min_by("file", "time_ns").alias("file"),
        F.min_by("position", "time_ns").alias("position"),
    )
    rounds = first.groupBy(*_KEYS).agg(
        F.timestamp_micros(F.expr("min(time_ns) div 1000")).alias("start"),
        F.timestamp_micros(F.expr("max(end_ns) div 1000")).alias("end"),
        F.count_distinct("member_id").cast("int").alias("members"),
        F.min_by("reason", F.when(F.col("reason").isNotNull(), F.col("time_ns"))).alias("reason"),
        evidence(),
    )
    return rounds.select(
        *_KEYS, "start", "end", "members", "reason",
        "place.file", "place.position",
    )
