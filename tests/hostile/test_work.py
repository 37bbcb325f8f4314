"""No request keeps a node's one thread for long (SEC-WORK)."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from kraftwire.limits import FETCH_BYTES_MAX, REQUEST_ELEMENTS_MAX, REQUEST_SIZE_MAX
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.node.admission import LONG_REQUESTS_BYTES_BURST, LONG_REQUESTS_BYTES_PER_SECOND
from kraftwire.node.context import Request
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.software import SOFTWARE_NAME_SIZE_MAX
from kraftwire.raft.effects import LogSlice, SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.wire.message import Message
from tests.hostile.secured import each_entry, read_end
from tests.hostile.served import Served, request_frame
from tests.support.raft.lone import leading
from tests.support.raft.messages import LISTENER, fetch
from tests.support.suite.autojump import autojump

_EVER = (1 << 31) - 1

pytestmark = pytest.mark.trio


def metadata(count: int, name: str = "t") -> MetadataRequest:
    """A request for this many topics."""
    topics = [MetadataRequestTopic(name=name) for _ in range(count)]
    return MetadataRequest(topics=topics)


@autojump
@each_entry
async def test_a_request_of_very_many_elements_is_refused(
    nursery: trio.Nursery, entry: str
) -> None:
    """Four of them deposed a leader."""
    served = Served(nursery, entry=entry)
    stream = await served.join()
    await stream.send_all(request_frame(metadata(REQUEST_ELEMENTS_MAX, "topic"), 8))
    assert await stream.receive_some(10)
    await stream.send_all(request_frame(metadata(REQUEST_ELEMENTS_MAX + 1, "topic"), 8))
    await read_end(stream)
    assert served.ended == {"too-many-elements": 1}


@autojump
async def test_elements_are_counted_at_every_depth(nursery: trio.Nursery) -> None:
    """One topic of very many partitions is as much work."""
    served = Served(nursery)
    partitions = [PartitionProduceData(index=n) for n in range(REQUEST_ELEMENTS_MAX)]
    topic = TopicProduceData(name="t", partition_data=partitions)
    stream = served.connect()
    await stream.send_all(request_frame(ProduceRequest(acks=1, topic_data=[topic]), 3))
    assert not await stream.receive_some(10)
    assert served.ended == {"too-many-elements": 1}


@autojump
@each_entry
async def test_a_long_produce_is_refused_before_it_is_decoded(
    nursery: trio.Nursery, entry: str
) -> None:
    """It had no limit: 20 MB took 2.2 GB and seven seconds."""
    served = Served(nursery, entry=entry)
    data = PartitionProduceData(records=bytes(REQUEST_SIZE_MAX))
    topic = TopicProduceData(name="t", partition_data=[data])
    stream = await served.join()
    with suppress(trio.BrokenResourceError):  # It is closed before all is sent.
        await stream.send_all(request_frame(ProduceRequest(acks=1, topic_data=[topic]), 3))
    await read_end(stream)
    assert served.ended == {"bad-frame": 1}


@autojump
@each_entry
async def test_long_requests_wait_for_each_other_and_short_ones_do_not_wait(
    nursery: trio.Nursery, entry: str
) -> None:
    """40 connections with requests of 63 kB each made a commit take three seconds."""
    answered: list[tuple[int, float]] = []

    async def note(request: Request) -> Message:
        assert isinstance(request.message, MetadataRequest)
        answered.append((len(request.message.topics or ()), trio.current_time() - began))
        return MetadataResponse()

    served = Served(nursery, note, entry=entry)
    long = request_frame(metadata(2000, "x" * 28), 8)
    streams = [await served.join() for _ in range(20)]
    began = trio.current_time()
    for stream in streams:
        await stream.send_all(long)
    short = await served.join()
    await short.send_all(request_frame(metadata(1), 8))
    assert await short.receive_some(10)
    (waited,) = (when for count, when in answered if count == 1)
    assert waited < 0.2, answered
    for stream in streams:
        assert await stream.receive_some(10)
    paced = (20 - 1) * (len(long) - 4) - LONG_REQUESTS_BYTES_BURST
    assert answered[-1][1] >= paced / LONG_REQUESTS_BYTES_PER_SECOND


async def test_a_replica_does_not_decide_how_much_is_read_for_it() -> None:
    """8 Fetches of 150 bytes against a log of 120 MB made a node take a gigabyte."""
    lone = leading()
    for sender, most, expected in ((2, _EVER, FETCH_BYTES_MAX), (-1, _EVER, FETCH_BYTES_MAX),
                                   (2, 100, 100), (2, -1, 0)):  # fmt: skip
        lone.effects.clear()
        request = fetch(sender, 0, 0, lone.core.epoch, max_wait_ms=0)
        request.max_bytes = most
        lone.handle(RequestReceived(7, 17, request, LISTENER))
        (reply,) = lone.all_of(SendReply)
        assert isinstance(reply.part, LogSlice)
        assert reply.part.max_bytes == expected


@autojump
async def test_a_long_name_of_software_is_refused(nursery: trio.Nursery) -> None:
    """3,000 connections with names of 32 kB left 96 MB behind for good."""

    async def answer(_: Request) -> Message:
        return ApiVersionsResponse()

    served = Served(nursery, answer)
    for size, expected in ((SOFTWARE_NAME_SIZE_MAX, 0), (32_000, ErrorCode.INVALID_REQUEST)):
        stream = served.connect()
        name = ApiVersionsRequest(
            client_software_name="a" * size, client_software_version="1"
        )
        await stream.send_all(request_frame(name, 3))
        answer = await stream.receive_some(1 << 16)
        assert int.from_bytes(answer[8:10], "big") == expected
