"""The effect of an exchange on partitions: produced to them, or fetched from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.protocol.error_codes import error_name
from kraftwire.records.reader import Batch
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.exchange import Exchange
from kraftwire.spark.captures.place import ends, micros, uuid_text

__all__ = ["TRAFFIC_APIS", "replica_of", "traffic_rows"]

_PRODUCE, _FETCH = 0, 1
TRAFFIC_APIS = frozenset({_PRODUCE, _FETCH})

_CLIENT = -1
_UNKNOWN = -1


def replica_of(request: Any) -> int:
    """Return the replica that sent a Fetch, -1 for clients."""
    state = request.replica_state
    return state.replica_id if state is not None else request.replica_id


def traffic_rows(exchange: Exchange, bodies: Bodies) -> Iterator[tuple[Any, ...]]:
    """Return a row for each partition that the response (or, without one, the request) names."""
    request = exchange.request
    if request is None or request.body is None:
        return
    frame = request.frame
    head = (frame.file, frame.position, micros(frame.time_ns), frame.time_ns)
    _, server = ends(frame.connection)
    client_id = frame.request.client_id if frame.request else None
    is_produce = frame.api_key == _PRODUCE
    replica = _CLIENT if is_produce else replica_of(request.body)
    kind = "produce" if is_produce else "fetch" if replica < 0 else "replica-fetch"
    middle = (kind, frame.api_version, client_id, server)
    cells = _produced(exchange, bodies) if is_produce else _fetched(exchange, bodies, replica)
    for each in cells:
        yield (*head, *middle, *each)


def _sizes(read: Read) -> dict[int, tuple[int, int, tuple[Batch, ...]]]:
    """Return bytes, records and batches of each struct that holds records, by its identity."""
    return {
        id(field.where.holder): (
            field.size,
            sum(max(batch.count or 0, 0) for batch in field.batches),
            field.batches,
        )
        for field in read.fields
    }


def _begin(batches: tuple[Batch, ...]) -> int | None:
    """Return the base timestamp of the first batch in microseconds, if its header has one."""
    if not batches or batches[0].magic < 2:
        return None
    time: int = batches[0].base_timestamp
    return time * 1000 if time >= 0 else None


def _produced(exchange: Exchange, bodies: Bodies) -> Iterator[tuple[Any, ...]]:
    request, response = exchange.request, exchange.response
    assert request is not None
    answers = {}
    if response is not None and response.body is not None:
        for topic in response.body.responses:
            for part in topic.partition_responses:
                answers[topic.name or topic.topic_id, part.index] = part
    sizes = _sizes(request)
    for topic in request.body.topic_data:
        name, id_text = bodies.topic_name(topic.name, topic.topic_id), uuid_text(topic.topic_id)
        for part in topic.partition_data:
            size, count, batches = sizes.get(id(part), (0, 0, ()))
            answer = answers.get((topic.name or topic.topic_id, part.index))
            code = None if answer is None else answer.error_code
            epoch = batches[0].partition_leader_epoch if batches else None
            offset = None if answer is None or answer.base_offset < 0 else answer.base_offset
            yield (
                name, id_text, part.index, _CLIENT, offset, size, count, None, None,
                epoch if epoch is not None and epoch >= 0 else None,
                code, None if not code else error_name(code), _begin(batches),
            )  # fmt: skip


def _fetched(exchange: Exchange, bodies: Bodies, replica: int) -> Iterator[tuple[Any, ...]]:
    request, response = exchange.request, exchange.response
    assert request is not None
    asked = {
        (topic.topic or topic.topic_id, part.partition): part
        for topic in request.body.topics
        for part in topic.partitions
    }
    if response is None or response.body is None:
        return
    sizes = _sizes(response)
    for topic in response.body.responses:
        key = topic.topic or topic.topic_id
        name, id_text = bodies.topic_name(topic.topic, topic.topic_id), uuid_text(topic.topic_id)
        for part in topic.partitions:
            question = asked.get((key, part.partition_index))
            size, count, batches = sizes.get(id(part), (0, 0, ()))
            code = part.error_code
            offset = question.fetch_offset if question else _first(batches)
            yield (
                name, id_text, part.partition_index, replica, offset, size, count,
                _known(part.high_watermark), _end(part, batches, offset), _epoch(part, batches),
                code, error_name(code) if code else None, _begin(batches),
            )  # fmt: skip


def _first(batches: tuple[Batch, ...]) -> int | None:
    """Return the first offset in the response; requests of a fetch session may not name it."""
    return batches[0].base_offset if batches else None


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset


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
    epoch = batches[-1].partition_leader_epoch if batches else None
    return None if epoch is None or epoch < 0 else int(epoch)
