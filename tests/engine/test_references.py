"""The engine releases every reference that it takes, on every path."""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
from collections.abc import Callable

import pytest

from kraftwire import engine
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.vote_request import TopicData, VoteRequest
from kraftwire.records import Record, build_batch
from kraftwire.wire.json_form import json_plan
from kraftwire.wire.message import Message
from tests.engine.columns import columns_of
from tests.engine.twins import FellBack, compare_decoding, plan_of
from tests.support.messages.vectors import vectors

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

# Enough that one object left behind by each round, of 16 bytes at least, stands out from what else
# changes in a process meanwhile.
ROUNDS = 150
_NOISE_BYTES = 500


def _swallow(work: Callable[[], object]) -> None:
    with contextlib.suppress(FellBack):
        work()


def _growth(work: Callable[[], object]) -> int:
    """How many more bytes are in use after many rounds than after a few."""
    for _ in range(50):
        _swallow(work)
    gc.collect()
    tracemalloc.start()
    try:
        _swallow(work)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(ROUNDS):
            _swallow(work)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before


def _longest(cls: type[Message], version: int) -> bytes:
    return max((v.data for v in vectors()[cls.NAME] if v.version == version), key=len)


@pytest.mark.parametrize(("cls", "version"), [(VoteRequest, 2), (FetchResponse, 12)])
def test_memory_does_not_grow(cls: type[Message], version: int) -> None:
    """One reference too many is a leak of one object for each message."""
    data = _longest(cls, version)
    plan = plan_of(cls, version)
    message, _ = plan.decode(data, 0, 10_000)
    assert _growth(lambda: plan.decode(data, 0, 10_000)) < _NOISE_BYTES
    assert _growth(lambda: plan.encode(message)) < _NOISE_BYTES


@pytest.mark.parametrize(("cls", "version"), [(VoteRequest, 2), (FetchResponse, 12)])
def test_memory_does_not_grow_where_the_engine_falls_back(
    cls: type[Message], version: int
) -> None:
    """Everything made before the damage has to be released, at every depth."""
    data = _longest(cls, version)
    plan = plan_of(cls, version)
    parts = [data[:cut] for cut in range(0, len(data), max(1, len(data) // 40))]

    def work() -> None:
        for part in parts:
            _swallow(lambda: plan.decode(part, 0, 10_000))  # noqa: B023

    assert _growth(work) < _NOISE_BYTES


def test_values_hold_as_many_references_as_before() -> None:
    """One reference too few causes a crash, later and elsewhere."""
    text, tags, blob = "clustér-" * 40, {5000: bytes(300)}, bytes(16)
    message = VoteRequest(cluster_id=text, topics=[TopicData(topic_name=text)])
    message.unknown_tagged_fields = tags
    held = (text, tags, blob, None, True, False, message, VoteRequest, TopicData)
    plan = plan_of(VoteRequest, 2)
    data = plan.encode(message)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(ROUNDS):
        plan.encode(message)
        plan.decode(data, 0, 10_000)
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(new - old) < ROUNDS // 10 for new, old in zip(after, before, strict=True))


def test_memory_does_not_grow_with_long_values() -> None:
    """They are noted until the message is complete; the notes go then, or when it fails."""
    text, tags, blob = "clustér-" * 400, {5000: bytes(3000)}, bytes(5000)
    partitions = [PartitionData(records=blob) for _ in range(40)]
    views = [PartitionData(records=memoryview(blob)) for _ in range(40)]
    topics = [FetchableTopicResponse(topic=text, partitions=partitions + views)]
    message = FetchResponse(responses=topics)
    message.unknown_tagged_fields = tags
    plan = plan_of(FetchResponse, 12)
    bad = FetchResponse(responses=[*topics, FetchableTopicResponse(topic="x" * 40_000)])

    def work() -> None:
        plan.encode(message)
        _swallow(lambda: plan.encode(bad))

    assert _growth(work) < _NOISE_BYTES
    held = (text, tags, tags[5000], blob, views[0].records)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(ROUNDS):
        work()
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(new - old) < ROUNDS // 10 for new, old in zip(after, before, strict=True))


def test_memory_does_not_grow_with_columns() -> None:
    """Buffers of columns, on the path that succeeds and on those that fall back."""
    rows = [Record(n, n, b"key", b"v" * 40, (("name", None), ("ключ", b"x"))) for n in range(60)]
    data = build_batch(rows)
    section = data[61:]
    bad = data[:-9] + b"\xff" * 9
    latin = data.replace("ключ".encode(), "ключ".encode("cp1251") * 2)

    def work() -> None:
        for buffer, own in ((data, None), (bad, None), (latin, None), (data, section)):
            columns_of(buffer, [0], [own])
            columns_of(buffer, [0], [own], rows_max=7)
            engine.core.check_records(buffer, 61, len(buffer), 60)

    assert _growth(work) < _NOISE_BYTES
    held = (data, section, None)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(ROUNDS):
        work()
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(new - old) < ROUNDS // 10 for new, old in zip(after, before, strict=True))


def test_memory_does_not_grow_with_texts() -> None:
    """Text and the list of gaps, on the path that succeeds and on those that fall back."""
    data = _longest(FetchResponse, 12)
    plan = json_plan(FetchResponse.facts(), 12)
    batch = build_batch([Record(0, 0, None, b"value")])
    parts = [data[:cut] for cut in range(0, len(data), max(1, len(data) // 40))]
    partitions = [PartitionData(records=batch)]
    wholes = [
        FetchResponse(
            responses=[FetchableTopicResponse(topic=name, partitions=partitions)]
        ).encode(12)
        for name in ("plain" * 300, "ключ")
    ]

    def work() -> None:
        for part in (data, *parts, *wholes):
            plan.write(part, 0, 10_000)
        for cut in (0, 1, 40):
            engine.core.json_batches(batch, 0, len(batch) - cut, b"{")
        json_plan(FetchResponse.facts(), 12)

    assert plan.write(wholes[0], 0, 10_000)[2]
    assert plan.write(wholes[1], 0, 10_000) is None
    assert _growth(work) < _NOISE_BYTES
    held = (data, batch, plan, None)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(ROUNDS):
        work()
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(new - old) < ROUNDS // 10 for new, old in zip(after, before, strict=True))


def test_decoded_messages_can_be_collected() -> None:
    """The collector does not track lists while they are filled, but has to do so afterwards."""
    data = _longest(FetchResponse, 12)
    message, _ = plan_of(FetchResponse, 12).decode(data, 0, 10_000)
    assert gc.is_tracked(message)
    assert gc.is_tracked(message.responses)


def _large(endpoints: int = 0) -> bytes:
    """A message of many objects, which the engine hides until it is complete."""
    partitions = [PartitionData(partition_index=index, records=b"x") for index in range(400)]
    topics = [FetchableTopicResponse(topic_id=bytes(16), partitions=partitions)]
    nodes = [NodeEndpoint(node_id=number, host="localhost") for number in range(endpoints)]
    return FetchResponse(responses=topics, node_endpoints=nodes).encode(16)


def test_all_of_a_large_message_comes_back_to_the_collector() -> None:
    """Its objects are hidden while it is made; a cycle that they become part of must not leak."""
    message, _ = plan_of(FetchResponse, 16).decode(_large(), 0, 10_000)
    (topic,) = message.responses
    held = [message, message.responses, topic, topic.partitions, *topic.partitions]
    assert all(map(gc.is_tracked, held))
    assert all(gc.is_tracked(each.aborted_transactions) for each in topic.partitions)


@pytest.mark.parametrize("count", [3, 5000])
def test_what_can_be_in_no_cycle_is_not_tracked(count: int) -> None:
    """A node that keeps a hundred thousand partitions would stop at each collection."""
    ids = [bytes(16)] * count
    record = PartitionRecord(isr=[1, 2, 3], replicas=[1, 2, 3], directories=ids)
    message, _ = plan_of(PartitionRecord, 2).decode(record.encode(2), 0, 10_000)
    assert message == record
    assert not any(map(gc.is_tracked, (message, message.isr, message.directories)))
    before = sys.getrefcount(PartitionRecord)
    for _ in range(ROUNDS):
        plan_of(PartitionRecord, 2).decode(record.encode(2), 0, 10_000)
    assert abs(sys.getrefcount(PartitionRecord) - before) < ROUNDS // 10


def test_a_large_message_that_breaks_off_leaves_nothing() -> None:
    """What was hidden by then is released as well."""
    data = _large()
    plan = plan_of(FetchResponse, 16)
    _swallow(lambda: plan.decode(data[:-7], 0, 10_000))
    assert _growth(lambda: plan.decode(data[:-7], 0, 10_000)) < _NOISE_BYTES
    assert _growth(lambda: plan.decode(data, 0, 10_000)) < _NOISE_BYTES


def test_a_tag_that_comes_twice_is_left_to_python() -> None:
    """The second value would release the first one, which is hidden and recorded."""
    data, plain = _large(endpoints=3), _large()
    start = len(plain) - 1
    twice = data[:start] + b"\x02" + data[start + 1 :] * 2
    with pytest.raises(FellBack):
        plan_of(FetchResponse, 16).decode(twice, 0, 10_000)
    assert compare_decoding(FetchResponse, 16, data) is not None
    decoded, end = FetchResponse.decode(twice, 16)
    assert (len(decoded.node_endpoints), end) == (3, len(twice))
