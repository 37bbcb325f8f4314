"""One connection: versions, turns, and its state after errors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
import trio

from kraftwire.client import AsyncAdmin
from kraftwire.client.channel import Channel
from kraftwire.errors import ApiError, SecurityError
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message
from tests.support.fake_node import (
    DESCRIBE_QUORUM,
    METADATA,
    FakeNode,
    HangUpError,
    metadata,
    quorum_state,
)

_Result = TypeVar("_Result")


def through_channel(
    node: FakeNode, use: Callable[[Channel], Awaitable[_Result]]
) -> _Result:
    """Connect to a node and use the connection."""

    async def run() -> _Result:
        address = ("127.0.0.1", node.port)
        channel = await Channel.connect(address, client_id="tester", timeout_s=10)
        try:
            return await use(channel)
        finally:
            await channel.aclose()

    return trio.run(run)


def test_tasks_that_share_a_connection_get_their_own_answers() -> None:
    """Answers to the wrong task would be worse than none."""
    def numbered(request: Message) -> Message:
        assert isinstance(request, DescribeQuorumRequest)
        return DescribeQuorumResponse(error_code=len(request.topics))

    async def use(channel: Channel) -> list[tuple[int, int]]:
        found = []

        async def ask(count: int) -> None:
            message = DescribeQuorumRequest(topics=[TopicData()] * count)
            response = await channel.request(message, timeout_s=10)
            assert isinstance(response, DescribeQuorumResponse)
            found.append((count, response.error_code))

        async with trio.open_nursery() as nursery:
            for count in range(5):
                nursery.start_soon(ask, count)
        return found

    with FakeNode({DESCRIBE_QUORUM: numbered}) as node:
        assert sorted(through_channel(node, use)) == [(count, count) for count in range(5)]


def test_a_request_that_cannot_be_sent_leaves_the_connection_alone() -> None:
    """UNSUPPORTED_VERSION is known before anything is sent."""
    async def use(channel: Channel) -> Message:
        with pytest.raises(ApiError, match="does not support Vote"):
            await channel.request(VoteRequest(), timeout_s=10)
        return await channel.request(DescribeQuorumRequest(), timeout_s=10)

    with FakeNode({DESCRIBE_QUORUM: lambda _: DescribeQuorumResponse()}) as node:
        assert isinstance(through_channel(node, use), DescribeQuorumResponse)


def test_a_request_without_answer_closes_the_connection() -> None:
    """A late answer must not be taken for the next one."""
    async def use(channel: Channel) -> bool:
        with pytest.raises(ApiError, match=r"no answer in 0.05 s") as raised:
            await channel.request(DescribeQuorumRequest(), timeout_s=0.05)
        assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
        with pytest.raises(ApiError, match="connection is closed"):
            await channel.request(DescribeQuorumRequest(), timeout_s=10)
        return channel.is_closed

    with FakeNode({DESCRIBE_QUORUM: lambda _: None}) as node:
        assert through_channel(node, use)


def test_a_cancelled_request_closes_the_connection_too() -> None:
    """Half a request may have been sent by then."""
    async def use(channel: Channel) -> bool:
        with trio.move_on_after(0.05):
            await channel.request(DescribeQuorumRequest(), timeout_s=10)
        return channel.is_closed

    with FakeNode({DESCRIBE_QUORUM: lambda _: None}) as node:
        assert through_channel(node, use)


def test_a_node_that_hangs_up_is_named() -> None:
    """With three addresses the user needs to know which one."""
    def hang_up(_: Message) -> Message:
        raise HangUpError

    async def use(channel: Channel) -> str:
        with pytest.raises(ApiError) as raised:
            await channel.request(DescribeQuorumRequest(), timeout_s=10)
        assert raised.value.code == ErrorCode.NETWORK_EXCEPTION
        return str(raised.value)

    with FakeNode({DESCRIBE_QUORUM: hang_up}) as node:
        text = through_channel(node, use)
        assert text.endswith((
            f"{node.address}: the node closed the connection",
            f"{node.address}: the node reset the connection",
        ))


def test_a_node_that_never_negotiates_is_given_up() -> None:
    """A paused process accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()

        async def run() -> None:
            await Channel.connect(address, client_id="tester", timeout_s=0.05)

        with pytest.raises(ApiError, match=r"no answer to ApiVersions in 0.05 s"):
            trio.run(run)


def test_tls_is_recognised() -> None:
    """The most common wrong port, and a frame length of 352 million explains nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve() -> None:
            for _ in range(2):  # the client looks again, to see what it is
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(bytes.fromhex("15030300020246"))
                    connection.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        address = listener.getsockname()

        async def run() -> None:
            await Channel.connect(address, client_id="tester", timeout_s=10)

        with pytest.raises(SecurityError, match="speaks TLS, and this client PLAINTEXT"):
            trio.run(run)
        thread.join()


def test_an_error_inside_the_async_client_is_raised_unchanged() -> None:
    """It is not in a group: users of the client should not have to know how it works inside."""
    async def run(address: str) -> None:
        async with AsyncAdmin(bootstrap_servers=address) as admin:
            await admin.describe_quorum()
            raise KeyError("mine")

    with FakeNode() as broker:
        broker.answers[METADATA] = lambda _: metadata({5: broker})
        broker.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(1)
        with pytest.raises(KeyError, match="mine"):
            trio.run(run, broker.address)


def test_the_async_client_keeps_its_connections() -> None:
    """A view that looks every second should not connect every second."""
    async def run(address: str) -> None:
        async with AsyncAdmin(bootstrap_servers=address) as admin:
            for _ in range(3):
                await admin.describe_quorum()

    with FakeNode() as broker:
        broker.answers[METADATA] = lambda _: metadata({5: broker})
        broker.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(1)
        trio.run(run, broker.address)
        assert len(broker.requests) == 1 + 3


def test_a_name_that_no_host_can_have_is_a_network_error() -> None:
    """Addresses come from nodes, and a wrong one should not end the caller with a traceback."""

    async def connect() -> None:
        await Channel.connect(("a..b", 9092), client_id="test", timeout_s=5)

    with pytest.raises(ApiError, match=r"a\.\.b:9092") as caught:
        trio.run(connect)
    assert caught.value.code == ErrorCode.NETWORK_EXCEPTION
