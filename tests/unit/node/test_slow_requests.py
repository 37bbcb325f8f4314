"""Requests that come too slowly or are made to take long."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.context import Request
from kraftwire.node.request_codec import DECODE_INLINE_BYTES
from kraftwire.protocol.payloads import encode_request
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.support.nodes.accepted import accepted
from tests.support.suite.autojump import autojump

VERSIONS = {55: (0, 2)}


async def _answer(request: Request) -> Message | None:
    assert isinstance(request.message, DescribeQuorumRequest)
    return DescribeQuorumResponse(error_code=len(request.message.topics[0].partitions) % 100)


def served(nursery: trio.Nursery, handshake_ms: int) -> Any:
    """The client's end of a connection that is being served."""
    near, far = trio.testing.memory_stream_pair()
    limits = ConnectionLimits(handshake_ms=handshake_ms)
    nursery.start_soon(accepted(far, VERSIONS, _answer, limits=limits).serve)
    return near


async def _trickle(stream: Any) -> None:
    for _ in range(100):
        await stream.send_all(b"\0")
        await trio.sleep(0.5)


@pytest.mark.slow
@autojump
async def test_a_byte_now_and_then_buys_no_more_time(nursery: trio.Nursery) -> None:
    """A thousand such connections would hold a node's memory for as long as they want."""
    near = served(nursery, handshake_ms=2000)
    await near.send_all((1000).to_bytes(4, "big"))
    began = trio.current_time()
    with pytest.raises(trio.BrokenResourceError):
        await _trickle(near)
    assert trio.current_time() - began < 3


@pytest.mark.trio
async def test_a_large_request_is_answered(nursery: trio.Nursery) -> None:
    """It is decoded in a thread, so that its contents cannot make the core wait."""
    near = served(nursery, handshake_ms=30_000)
    partitions = [PartitionData(partition_index=place) for place in range(9_042)]
    body = DescribeQuorumRequest(topics=[TopicData(topic_name="t" * 30_000, partitions=partitions)])
    header = RequestHeader(request_api_key=55, request_api_version=2, correlation_id=7)
    payload = encode_request(header, body)
    assert len(payload) > DECODE_INLINE_BYTES
    await near.send_all(frame(payload))
    data = b""
    while len(data) < 11:
        piece = bytes(await near.receive_some(100))
        assert piece, "the connection is closed"
        data += piece
    assert int.from_bytes(data[4:8], "big") == 7
    assert int.from_bytes(data[9:11], "big") == 42
    await near.aclose()
