"""What a node does with the bytes of one accepted connection."""

from __future__ import annotations

import logging
import struct

import pytest
import trio
import trio.testing

from kraftwire import messages
from kraftwire.errors import StorageError
from kraftwire.limits import REQUEST_SIZE_MAX
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.node.admission import Admission
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.config_listeners import Listener
from kraftwire.node.connection_end import ConnectionStats
from kraftwire.node.context import Request
from kraftwire.node.logs import LOGGER, RateLimit
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.support.nodes.accepted import Handle, accepted
from tests.support.suite.autojump import autojump

pytestmark = autojump

LISTENER = Listener("PLAINTEXT", "localhost", 9092, False, True)
VERSIONS = {0: (0, 11), 3: (0, 13), 18: (0, 5)}


async def answer_by_kind(request: Request) -> Message:
    """An answer to the two APIs of these tests; Metadata repeats who asked."""
    if request.api_key == ApiVersionsRequest.API_KEY:
        return ApiVersionsResponse()
    return MetadataResponse(cluster_id=f"{request.client_id} {request.software}")


class Peer:
    """The other end of a served connection."""

    def __init__(
        self,
        nursery: trio.Nursery,
        answer: Handle = answer_by_kind,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.stats = ConnectionStats()
        self.admission = Admission()
        self.stream, own = trio.testing.memory_stream_pair()
        self.connection = accepted(
            own,
            VERSIONS,
            answer,
            listener=LISTENER,
            limits=limits,
            stats=self.stats,
            peer="10.0.0.1:5",
            admission=self.admission,
        )
        nursery.start_soon(self.connection.serve)
        self._buffer = b""

    async def send(self, message: Message, version: int, correlation_id: int = 1) -> None:
        await self.stream.send_all(request_frame(message, version, correlation_id))

    async def receive(self, api_key: int, version: int) -> tuple[int, Message]:
        """Correlation id and body of the next response."""
        (size,) = struct.unpack(">i", await self._read(4))
        header, body, end = decode_response(payload := await self._read(size), api_key, version)
        assert end == len(payload)
        return header.correlation_id, body

    async def is_closed(self) -> bool:
        return await self.stream.receive_some(100) == b""

    async def _read(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = await self.stream.receive_some(1000)
            assert data, "the connection is closed"
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data


def request_frame(message: Message, version: int, correlation_id: int = 1) -> bytes:
    header = RequestHeader(
        request_api_key=message.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="me",
    )
    return frame(encode_request(header, message))


def hello(name: str = "apache-kafka-java", version: str = "1.2.3") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


async def test_requests_are_answered_in_their_order(nursery: trio.Nursery) -> None:
    """Clients send several requests at once and match the answers by order."""

    async def slow_first(request: Request) -> Message:
        assert isinstance(request.message, MetadataRequest)
        if request.message.allow_auto_topic_creation:
            await trio.sleep(5)
        return MetadataResponse()

    peer = Peer(nursery, slow_first)
    both = request_frame(MetadataRequest(allow_auto_topic_creation=True), 12, 1)
    both += request_frame(MetadataRequest(allow_auto_topic_creation=False), 12, 2)
    await peer.stream.send_all(both)
    assert (await peer.receive(3, 12))[0] == 1
    assert (await peer.receive(3, 12))[0] == 2


async def test_who_is_above_a_quota_waits_for_the_next_answer(nursery: trio.Nursery) -> None:
    """The answer that says so comes at once; old clients do not wait by themselves (C-QUO-1)."""

    async def throttled(request: Request) -> Message:
        assert isinstance(request.message, MetadataRequest)
        is_above = request.message.allow_auto_topic_creation
        return MetadataResponse(throttle_time_ms=7000 if is_above else 0)

    peer = Peer(nursery, throttled)
    for number, above in enumerate((True, False, False)):
        await peer.send(MetadataRequest(allow_auto_topic_creation=above), 12, number)
    times = []
    for number in range(3):
        assert (await peer.receive(3, 12))[0] == number
        times.append(trio.current_time())
    assert times == [times[0], times[0] + 7, times[0] + 7]


async def test_a_frame_may_come_byte_by_byte(nursery: trio.Nursery) -> None:
    """TCP keeps no boundaries."""
    peer = Peer(nursery)
    for byte in request_frame(MetadataRequest(), 12):
        await peer.stream.send_all(bytes([byte]))
    assert (await peer.receive(3, 12))[0] == 1


async def test_handlers_learn_client_id_and_software(nursery: trio.Nursery) -> None:
    """Java peers are told from ours by the name in their ApiVersions request."""
    peer = Peer(nursery)
    await peer.send(hello(), 4)
    await peer.receive(18, 4)
    await peer.send(MetadataRequest(), 12)
    _, body = await peer.receive(3, 12)
    assert isinstance(body, MetadataResponse)
    assert body.cluster_id == "me apache-kafka-java"


async def test_an_api_versions_that_is_too_new_is_answered_in_version_0(
    nursery: trio.Nursery
) -> None:
    """KIP-511: the client must be able to read which versions it may use, and continue."""
    peer = Peer(nursery)
    body = request_frame(hello(), 4)
    newer = body[:6] + struct.pack(">h", 6) + body[8:]
    await peer.stream.send_all(newer)
    _, answer = await peer.receive(18, 0)
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    (own,) = answer.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 5)
    await peer.send(hello(), 4)
    assert (await peer.receive(18, 4))[0] == 1


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        # KIP-1242: a client that knows cluster or node knows both.
        (5, {"cluster_id": "c", "node_id": -1}),
        (5, {"cluster_id": None, "node_id": 3}),
        # R-SRV-2: the name ends up in metrics and logs.
        *(
            (3, {"client_software_name": name})
            for name in ("", "-kafka", "ka fka", "kafka/", "kafka-")
        ),
    ],
)
async def test_an_api_versions_of_wrong_shape_is_an_invalid_request(
    nursery: trio.Nursery, version: int, fields: dict[str, object]
) -> None:
    """It is answered, unlike other bytes that are not a request: the client shows why."""
    peer = Peer(nursery)
    request = hello()
    for name, value in fields.items():
        setattr(request, name, value)
    await peer.send(request, version)
    _, answer = await peer.receive(18, version)
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "bad-frame"),
        (struct.pack(">i", -1), "bad-frame"),
        (struct.pack(">i", 100 * 1024 * 1024 + 1), "bad-frame"),
        # Decoding millions of tiny elements would keep the Raft core waiting.
        (frame(struct.pack(">hhihb", 3, 12, 1, -1, 0) + bytes(REQUEST_SIZE_MAX)), "bad-frame"),
        (frame(b""), "bad-request"),
        (frame(b"\0\3"), "bad-request"),
        (frame(struct.pack(">hhih", 3, 12, 1, -1)), "bad-request"),
        (frame(struct.pack(">hhih", 3, 12, 1, -1) + b"\0" + b"\xff" * 20), "bad-request"),
        (frame(struct.pack(">hhihb", 999, 0, 1, -1, 0)), "not-offered"),
        (frame(struct.pack(">hhihb", 3, 99, 1, -1, 0)), "not-offered"),
        (frame(struct.pack(">hhihb", 52, 2, 1, -1, 0)), "not-offered"),
    ],
)
async def test_bytes_that_are_not_a_request_close_the_connection(
    nursery: trio.Nursery, data: bytes, cause: str
) -> None:
    """The effect is a counter, one line, and the end of this connection."""
    peer = Peer(nursery)
    await peer.stream.send_all(data)
    assert await peer.is_closed()
    assert peer.stats.closed == {cause: 1}
    assert peer.admission.memory.used == 0


async def test_garbage_is_logged_once_and_without_traceback(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scanner must not fill the disk with log lines."""
    monkeypatch.setattr(LOGGER, "propagate", True)
    limit = RateLimit(trio.current_time)
    with caplog.at_level(logging.WARNING, LOGGER.name):
        for _ in range(100):
            peer = Peer(nursery)
            peer.connection._refusals = limit
            await peer.stream.send_all(struct.pack(">i", -1))
            assert await peer.is_closed()
        assert len(caplog.records) == 1
        assert caplog.records[0].exc_info is None
        await trio.sleep(11)
        limit.log("bad-frame", "bad-frame")
    assert caplog.records[1].__dict__["fields"] == {"held_back": 99}


@pytest.mark.parametrize(
    ("sent", "seconds", "cause"),
    [
        # Connections that send nothing, or too little, must not pile up.
        (b"", 3, "slow-request"),
        (b"\0\0", 3, "slow-request"),
        (b"\0\0\0\x0a\0\3", 3, "slow-request"),
        # connections.max.idle.ms, counted from the last request on.
        (request_frame(MetadataRequest(), 12), 60, "idle"),
    ],
)
async def test_a_connection_without_a_request_is_closed_after_its_time(
    nursery: trio.Nursery, sent: bytes, seconds: int, cause: str
) -> None:
    """The time for a request that has begun is shorter than that between two."""
    peer = Peer(nursery, limits=ConnectionLimits(idle_ms=60_000, handshake_ms=3000))
    await peer.stream.send_all(sent)
    if cause == "idle":
        await peer.receive(3, 12)
    began = trio.current_time()
    assert await peer.is_closed()
    assert trio.current_time() - began == pytest.approx(seconds, abs=0.1)
    assert peer.stats.closed == {cause: 1}


async def test_an_idle_time_below_zero_means_for_ever(nursery: trio.Nursery) -> None:
    """As in Kafka."""
    peer = Peer(nursery, limits=ConnectionLimits(idle_ms=-1))
    await peer.send(hello(), 4)
    await peer.receive(18, 4)
    await trio.sleep(1_000_000)
    await peer.send(MetadataRequest(), 12)
    assert (await peer.receive(3, 12))[0] == 1


async def test_a_reader_that_does_not_read_is_given_up(nursery: trio.Nursery) -> None:
    """An answer that is not read must not be held for ever."""
    peer = Peer(nursery, limits=ConnectionLimits(write_ms=2000))

    async def stuck() -> None:
        await trio.sleep_forever()

    own = peer.connection._stream
    assert isinstance(own, trio.StapledStream)
    own.send_stream.send_all_hook = stuck  # type: ignore[attr-defined]
    await peer.send(hello(), 4)
    await trio.sleep(3)
    assert peer.stats.closed == {"slow-reader": 1}


async def test_a_peer_that_leaves_during_its_request_does_no_harm(nursery: trio.Nursery) -> None:
    """Followers disconnect while their Fetch is parked."""

    async def slow(request: Request) -> Message:
        del request
        await trio.sleep(5)
        return MetadataResponse()

    peer = Peer(nursery, slow)
    await peer.send(MetadataRequest(), 12)
    await peer.stream.aclose()
    await trio.sleep(6)
    assert peer.stats.closed == {"broken": 1}


async def test_a_fault_in_a_handler_ends_only_its_connection(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own mistake in one API must not take the quorum down."""
    monkeypatch.setattr(LOGGER, "propagate", True)

    async def faulty(request: Request) -> Message:
        del request
        raise KeyError("topic")

    peer = Peer(nursery, faulty)
    await peer.send(MetadataRequest(), 12)
    assert await peer.is_closed()
    assert peer.stats.closed == {"fault": 1}
    (record,) = caplog.records
    fields = record.__dict__["fields"]
    assert fields["request"] == "MetadataRequest"
    assert fields["at"].startswith("test_connection.py:")


async def test_a_disk_error_in_a_handler_ends_the_node() -> None:
    """D9: a node that cannot read its log must not continue as if it could."""

    async def failing(request: Request) -> Message:
        del request
        raise StorageError("read failed", file="0.log")

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            peer = Peer(nursery, failing)
            await peer.send(MetadataRequest(), 12)
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        await serve()
    assert caught.group_contains(StorageError)


async def test_a_handler_may_leave_a_request_unanswered(nursery: trio.Nursery) -> None:
    """R-SRV-6: what cannot be answered honestly ends the connection."""

    async def silent(request: Request) -> None:
        del request

    peer = Peer(nursery, silent)
    await peer.send(MetadataRequest(), 12)
    assert await peer.is_closed()
    assert peer.stats.closed == {"unanswered": 1}


async def test_every_offered_version_of_metadata_is_answered_in_its_own_layout(
    nursery: trio.Nursery
) -> None:
    """Clients from ten years connect to one node."""
    peer = Peer(nursery)
    for version in range(messages.API_VERSIONS[3][1] + 1):
        await peer.send(MetadataRequest(), version, version)
        assert (await peer.receive(3, version))[0] == version
    assert peer.stats.requests == {"Metadata": 14}
