"""The effect of an exchange on partitions: produced to them, or fetched from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.versions import fetching_replica
from kraftwire.records.reader import Batch
from kraftwire.spark.captures.bodies import TableFrame
from kraftwire.spark.captures.exchange import TableExchange
from kraftwire.spark.tables.columns import known, uuid_text

TRAFFIC_APIS = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})

_CLIENT = -1

TopicName = Callable[[str | None, bytes | None], str | None]


class PartitionTraffic(NamedTuple):
    """What one Produce or Fetch did to one partition: a row of partition_traffic.

    `frame` is the request. Units: bytes for `size`, that of batches.
    """

    frame: RawFrame
    kind: str
    topic: str | None
    topic_id: str | None
    partition: int
    replica_id: int
    offset: int | None
    size: int
    record_count: int
    high_watermark: int | None
    log_end_offset: int | None
    leader_epoch: int | None
    error_code: int | None
    first_timestamp: int | None


def traffic_rows(exchange: TableExchange, topic_name: TopicName) -> Iterator[PartitionTraffic]:
    """Return a row for each partition that the response (or, without one, the request) names."""
    request, response = exchange.request, exchange.response
    if request is None or request.body is None:
        return
    if request.api_key == ApiKey.PRODUCE:
        yield from _produced(request, response, topic_name)
    elif response is not None and response.body is not None:
        yield from _fetched(request, response, topic_name)


def _sizes(read: TableFrame) -> dict[int, tuple[int, int, tuple[Batch, ...]]]:
    """Return bytes, records and batches of each struct that holds records, by its identity."""
    return {
        id(field.where.holder): (
            field.size,
            sum(max(batch.count or 0, 0) for batch in field.batches),
            field.batches,
        )
        for field in read.fields
    }


def _first_timestamp(batches: tuple[Batch, ...]) -> int | None:
    """Return the base timestamp of the first batch in microseconds, if its header has one."""
    if not batches or batches[0].magic < 2:
        return None
    time: int = batches[0].base_timestamp
    return time * 1000 if time >= 0 else None


def _produced(
    request: TableFrame, response: TableFrame | None, topic_name: TopicName
) -> Iterator[PartitionTraffic]:
    results = {}
    asked: Any = request.body
    answer: Any = None if response is None else response.body
    if answer is not None:
        for topic in answer.responses:
            for part in topic.partition_responses:
                results[topic.name or topic.topic_id, part.index] = part
    sizes = _sizes(request)
    for topic in asked.topic_data:
        for part in topic.partition_data:
            size, count, batches = sizes.get(id(part), (0, 0, ()))
            result = results.get((topic.name or topic.topic_id, part.index))
            yield PartitionTraffic(
                frame=request,
                kind="produce",
                topic=topic_name(topic.name, topic.topic_id),
                topic_id=uuid_text(topic.topic_id),
                partition=part.index,
                replica_id=_CLIENT,
                offset=None if result is None else known(result.base_offset),
                size=size,
                record_count=count,
                high_watermark=None,
                log_end_offset=None,
                leader_epoch=known(batches[0].partition_leader_epoch) if batches else None,
                error_code=None if result is None else result.error_code,
                first_timestamp=_first_timestamp(batches),
            )


def _fetched(
    request: TableFrame, response: TableFrame, topic_name: TopicName
) -> Iterator[PartitionTraffic]:
    asked: Any = request.body
    answer: Any = response.body
    replica = fetching_replica(asked)
    requested = {
        (topic.topic or topic.topic_id, part.partition): part.fetch_offset
        for topic in asked.topics
        for part in topic.partitions
    }
    sizes = _sizes(response)
    for topic in answer.responses:
        for part in topic.partitions:
            size, count, batches = sizes.get(id(part), (0, 0, ()))
            # Requests of a fetch session may not name it.
            first = batches[0].base_offset if batches else None
            key = topic.topic or topic.topic_id, part.partition_index
            offset = requested.get(key, first)
            yield PartitionTraffic(
                frame=request,
                kind="fetch" if replica < 0 else "replica-fetch",
                topic=topic_name(topic.topic, topic.topic_id),
                topic_id=uuid_text(topic.topic_id),
                partition=part.partition_index,
                replica_id=replica,
                offset=offset,
                size=size,
                record_count=count,
                high_watermark=known(part.high_watermark),
                log_end_offset=_end(part, batches, offset),
                leader_epoch=_epoch(part, batches),
                error_code=part.error_code,
                first_timestamp=_first_timestamp(batches),
            )


def _end(part: Any, batches: tuple[Batch, ...], offset: int | None) -> int | None:
    """Return the leader's log end offset: at least the one after the records sent, or the fetch
    offset if there are none.
    """
    if part.error_code:
        return None
    if batches:
        last = batches[-1].last_offset
        return None if last is None else last + 1
    return offset


def _epoch(part: Any, batches: tuple[Batch, ...]) -> int | None:
    leader = part.current_leader
    if leader is not None and leader.leader_epoch >= 0:
        return int(leader.leader_epoch)
    return known(batches[-1].partition_leader_epoch) if batches else None
