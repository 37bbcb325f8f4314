"""One connection: versions, turns, and its state after errors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
import trio

from kraftwire.errors import ApiError, SecurityError, WireError
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_request, encode_response
from kraftwire.transport.client_connection import ClientConnection
from kraftwire.transport.streams import Stream
from kraftwire.wire.frame import FrameBuffer, frame
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import (
    DESCRIBE_QUORUM,
    FakeNode,
    HangUpError,
)

_Result = TypeVar("_Result")


def through_connection(
    node: FakeNode, use: Callable[[ClientConnection], Awaitable[_Result]]
) -> _Result:
    """Connect to a node and use the connection."""

    async def run() -> _Result:
        address = ("127.0.0.1", node.port)
        connection = await ClientConnection.connect(address, client_id="tester", timeout_s=10)
        try:
            return await use(connection)
        finally:
            connection.close()

    return trio.run(run)


def test_tasks_that_share_a_connection_get_their_own_answers() -> None:
    """Answers to the wrong task would be worse than none."""
    def numbered(request: Message) -> Message:
        assert isinstance(request, DescribeQuorumRequest)
        return DescribeQuorumResponse(error_code=len(request.topics))

    async def use(connection: ClientConnection) -> list[tuple[int, int]]:
        found = []

        async def ask(count: int) -> None:
            message = DescribeQuorumRequest(topics=[TopicData()] * count)
            response = await connection.request(message, timeout_s=10)
            assert isinstance(response, DescribeQuorumResponse)
            found.append((count, response.error_code))

        async with trio.open_nursery() as nursery:
            for count in range(5):
                nursery.start_soon(ask, count)
        return found

    with FakeNode({DESCRIBE_QUORUM: numbered}) as node:
        assert sorted(through_connection(node, use)) == [(count, count) for count in range(5)]


def test_a_request_that_cannot_be_sent_leaves_the_connection_alone() -> None:
    """UNSUPPORTED_VERSION is known before anything is sent."""
    async def use(connection: ClientConnection) -> Message:
        with pytest.raises(ApiError, match="does not support Vote"):
            await connection.request(VoteRequest(), timeout_s=10)
        return await connection.request(DescribeQuorumRequest(), timeout_s=10)

    with FakeNode({DESCRIBE_QUORUM: lambda _: DescribeQuorumResponse()}) as node:
        assert isinstance(through_connection(node, use), DescribeQuorumResponse)


def test_a_request_without_answer_closes_the_connection() -> None:
    """A late answer must not be taken for the next one."""
    async def use(connection: ClientConnection) -> bool:
        with pytest.raises(ApiError, match=r"no answer in 0.05 s") as raised:
            await connection.request(DescribeQuorumRequest(), timeout_s=0.05)
        assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
        with pytest.raises(ApiError, match="connection is closed"):
            await connection.request(DescribeQuorumRequest(), timeout_s=10)
        return connection.is_closed

    with FakeNode({DESCRIBE_QUORUM: lambda _: None}) as node:
        assert through_connection(node, use)


def test_a_cancelled_request_closes_the_connection_too() -> None:
    """Half a request may have been sent by then."""
    async def use(connection: ClientConnection) -> bool:
        with trio.move_on_after(0.05):
            await connection.request(DescribeQuorumRequest(), timeout_s=10)
        return connection.is_closed

    with FakeNode({DESCRIBE_QUORUM: lambda _: None}) as node:
        assert through_connection(node, use)


def test_a_node_that_hangs_up_is_named() -> None:
    """With three addresses the user needs to know which one."""
    def hang_up(_: Message) -> Message:
        raise HangUpError

    async def use(connection: ClientConnection) -> str:
        with pytest.raises(ApiError) as raised:
            await connection.request(DescribeQuorumRequest(), timeout_s=10)
        assert raised.value.code == ErrorCode.NETWORK_EXCEPTION
        return str(raised.value)

    with FakeNode({DESCRIBE_QUORUM: hang_up}) as node:
        text = through_connection(node, use)
        assert text.endswith((
            f"{node.address}: the node closed the connection",
            f"{node.address}: the node reset the connection",
        ))


def test_a_node_that_never_negotiates_is_given_up() -> None:
    """A paused process accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()

        async def run() -> None:
            await ClientConnection.connect(address, client_id="tester", timeout_s=0.05)

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
            await ClientConnection.connect(
                address, client_id="tester", timeout_s=10, explains=True
            )

        with pytest.raises(SecurityError, match="speaks TLS, and this client PLAINTEXT"):
            trio.run(run)
        thread.join()


@pytest.mark.parametrize("host", ["", ".", "a..b", "\ud800", "x" * 300, "two words", "a\0b"])
def test_a_name_that_no_host_can_have_is_a_network_error(host: str) -> None:
    """Endpoints come from nodes, and a wrong one must not end a caller with a traceback."""

    async def connect() -> None:
        await ClientConnection.connect((host, 1), client_id="test", timeout_s=5)

    with pytest.raises(ApiError, match=r":1: \w") as caught:
        trio.run(connect)
    assert caught.value.code == ErrorCode.NETWORK_EXCEPTION


class MemoryNode:
    """A node at the end of a memory stream: its requests wait until a test answers them."""

    def __init__(self) -> None:
        near, self.stream = trio.testing.memory_stream_pair()
        self.near = near
        self._frames = FrameBuffer()
        self._payloads: list[bytes] = []

    async def next(self) -> tuple[int, Message]:
        """Return correlation id and body of the next request."""
        while not self._payloads:
            self._payloads += self._frames.feed(await self.stream.receive_some())
        header, message, _ = decode_request(self._payloads.pop(0))
        self.version = header.request_api_version
        return header.correlation_id, message

    async def answer(self, *responses: tuple[int, Message]) -> None:
        """Send responses in one piece."""
        await self.stream.send_all(
            b"".join(
                frame(encode_response(ResponseHeader(correlation_id=id), message, self.version))
                for id, message in responses
            )
        )

    async def connect(self, nursery: trio.Nursery, **options: Any) -> ClientConnection:
        """Return a connection to this node."""

        async def open_stream(*_: object) -> Stream:
            await trio.lowlevel.checkpoint()
            return self.near

        async def negotiate() -> None:
            id, _ = await self.next()
            key = ApiVersion(api_key=DESCRIBE_QUORUM, min_version=0, max_version=2)
            await self.answer((id, ApiVersionsResponse(api_keys=[key])))

        nursery.start_soon(negotiate)
        return await ClientConnection.connect(
            ("memory", 1), client_id="tester", open_stream=open_stream, **options
        )


class Requests:
    """Requests of a test: each has as many topics as its number says."""

    def __init__(self, connection: ClientConnection, nursery: trio.Nursery) -> None:
        self.outcomes: list[tuple[int, object]] = []
        self._connection = connection
        self._nursery = nursery

    async def send(self, number: int, timeout_s: float = 60) -> None:
        """Send a request; returns once it waits for its response."""
        self._nursery.start_soon(self._request, number, timeout_s)
        await trio.testing.wait_all_tasks_blocked()

    async def _request(self, number: int, timeout_s: float) -> None:
        message = DescribeQuorumRequest(topics=[TopicData()] * number)
        try:
            response = await self._connection.request(message, timeout_s=timeout_s)
        except ApiError as error:
            self.outcomes.append((number, ErrorCode(error.code)))
        except WireError:
            self.outcomes.append((number, WireError))
        else:
            assert isinstance(response, DescribeQuorumResponse)
            self.outcomes.append((number, response.error_code))


def number_of(request: Message) -> int:
    """The number of one of `Requests`."""
    assert isinstance(request, DescribeQuorumRequest)
    return len(request.topics)


@pytest.mark.trio
@pytest.mark.parametrize("pieces", [((0, 1, 2),), ((0,), (1,), (2,)), ((2, 0), (1,))])
async def test_requests_are_in_flight_together(
    nursery: trio.Nursery, pieces: tuple[tuple[int, ...], ...]
) -> None:
    """All are sent before the first is answered, and each gets the answer with its id."""
    node = MemoryNode()
    requests = Requests(await node.connect(nursery), nursery)
    for number in range(3):
        await requests.send(number)
    found = [await node.next() for _ in range(3)]
    assert [number_of(message) for _, message in found] == [0, 1, 2]
    for piece in pieces:
        await node.answer(
            *((found[each][0], DescribeQuorumResponse(error_code=each)) for each in piece)
        )
        await trio.testing.wait_all_tasks_blocked()
    assert sorted(requests.outcomes, key=str) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.trio
async def test_a_late_answer_ends_all_requests_of_its_connection(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """Kafka's client closes the connection, too: the node is slow for the others as well."""
    del autojump_clock
    node = MemoryNode()
    requests = Requests(await node.connect(nursery), nursery)
    await requests.send(0, timeout_s=1)
    await requests.send(1)
    await trio.sleep(1)
    await trio.testing.wait_all_tasks_blocked()
    assert requests.outcomes == [
        (0, ErrorCode.REQUEST_TIMED_OUT),
        (1, ErrorCode.NETWORK_EXCEPTION),
    ]


@pytest.mark.trio
async def test_a_response_that_cannot_be_read_is_the_error_of_its_own_request(
    nursery: trio.Nursery,
) -> None:
    """A good response that comes with it is returned; later requests lose the connection."""
    node = MemoryNode()
    requests = Requests(await node.connect(nursery), nursery)
    for number in range(3):
        await requests.send(number)
    first, second, third = [(await node.next())[0] for _ in range(3)]
    good, last = (
        frame(encode_response(ResponseHeader(correlation_id=id), DescribeQuorumResponse(), 2))
        for id in (first, third)
    )
    await node.stream.send_all(good + frame(second.to_bytes(4, "big")) + last)
    await trio.testing.wait_all_tasks_blocked()
    assert requests.outcomes == [(0, 0), (1, WireError), (2, ErrorCode.NETWORK_EXCEPTION)]


@pytest.mark.trio
async def test_a_tap_sees_the_bytes_of_both_directions(nursery: trio.Nursery) -> None:
    """A capture of a node's own traffic has whole connections."""
    seen: list[tuple[str, int]] = []

    class Recorder:
        def sent(self, data: bytes) -> None:
            seen.append(("sent", len(data)))

        def received(self, data: bytes) -> None:
            seen.append(("received", len(data)))

        def ended(self, *, by_peer: bool = False) -> None:
            raise AssertionError(by_peer)

        def closed(self, *, by_peer: bool = False) -> None:
            assert not by_peer
            seen.append(("closed", 0))

    node = MemoryNode()
    connection = await node.connect(nursery, make_tap=lambda *_: Recorder())
    connection.close()
    connection.close()
    assert [kind for kind, _ in seen] == ["sent", "received", "closed"]
    assert all(size > 0 for kind, size in seen if kind != "closed")
