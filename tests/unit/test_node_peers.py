"""Requests to other nodes: one at a time, within their time, whatever the other side answers."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.errors import ApiError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.node.config import ConnectionLimits, Listener
from kraftwire.node.connection import Connection, ConnectionStats, Service
from kraftwire.node.context import Request
from kraftwire.node.link import Link, LinkDown, LinkStats, Stream, open_stream
from kraftwire.node.logs import RateLimit
from kraftwire.node.peers import Peers
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import Destination, SendRequest
from kraftwire.raft.events import RequestFailed, ResponseReceived
from kraftwire.wire.message import Message

LISTENER = Listener("CONTROLLER", "peer", 9093, True, False)
Handle = Callable[[Request], Awaitable[Message | None]]


class FarSide:
    """The nodes that links connect to: each connection is served by `handle`, or by `serve`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.versions = {18: (0, 4), 52: (0, 2)}
        self.connects: list[tuple[str, int, float]] = []
        self.requests: list[tuple[str, int]] = []
        self.is_down = False
        self.handle: Handle = self._vote
        self.serve: Callable[[Any], Awaitable[None]] = self._serve
        self.stats = LinkStats()
        self._nursery = nursery

    async def connect(self, host: str, port: int) -> Stream:
        self.connects.append((host, port, trio.current_time()))
        await trio.lowlevel.checkpoint()
        if self.is_down:
            raise ConnectionRefusedError("connection refused")
        near, far = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self.serve, far)
        return near

    def link(self) -> Link:
        limit = RateLimit(trio.current_time)
        return Link("raft-client-1", stats=self.stats, garbage=limit, connect=self.connect)

    async def _serve(self, far: Any) -> None:
        service = Service(LISTENER, self.versions, self._answer)
        stats, limit = ConnectionStats(), RateLimit(trio.current_time)
        connection = Connection(far, service, ConnectionLimits(), stats=stats, garbage=limit)
        await connection.serve()

    async def _answer(self, request: Request) -> Message | None:
        if isinstance(request.message, ApiVersionsRequest):
            keys = [
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.versions.items()
            ]
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            return ApiVersionsResponse(api_keys=keys, supported_features=[feature])
        self.requests.append((type(request.message).__name__, request.version))
        return await self.handle(request)

    @staticmethod
    async def _vote(request: Request) -> Message:
        del request
        return VoteResponse(error_code=7)


class Answers:
    """What the core would hear."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int | str]] = []

    def __call__(self, event: ResponseReceived | RequestFailed) -> None:
        if isinstance(event, RequestFailed):
            self.events.append((event.request_id, event.error))
        else:
            self.events.append((event.request_id, event.message.NAME))


def request(request_id: int, message: Message | None = None, peer: int = 2) -> SendRequest:
    destination = Destination(peer, f"host{peer}", 9093)
    return SendRequest(request_id, destination, message or VoteRequest(), 2000)


async def start(far: FarSide, nursery: trio.Nursery) -> tuple[Peers, Answers]:
    answers = Answers()
    peers = Peers(far.link, answers, far.stats)
    nursery.start_soon(peers.run)
    await trio.testing.wait_all_tasks_blocked()
    return peers, answers


@pytest.mark.trio
async def test_a_connection_is_made_once_and_versions_are_negotiated(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """R-NET-1, R-NET-2: one connection per destination, the highest common version."""
    del autojump_clock
    far = FarSide(nursery)
    far.versions[52] = (0, 1)
    peers, answers = await start(far, nursery)
    for number in (1, 2, 3):
        peers.send(request(number))
        await trio.testing.wait_all_tasks_blocked()
    assert answers.events == [(1, "VoteResponse"), (2, "VoteResponse"), (3, "VoteResponse")]
    assert len(far.connects) == 1
    assert far.requests == [("VoteRequest", 1)] * 3


@pytest.mark.trio
async def test_destinations_do_not_wait_for_each_other(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """A hung peer must not hold up the votes of the others."""
    del autojump_clock
    far = FarSide(nursery)

    async def hang(request: Request) -> Message:
        del request
        await trio.sleep_forever()
        raise AssertionError

    far.handle = hang
    peers, answers = await start(far, nursery)
    peers.send(request(1, peer=2))
    await trio.testing.wait_all_tasks_blocked()
    far.handle = far._vote
    peers.send(request(2, peer=3))
    await trio.testing.wait_all_tasks_blocked()
    assert answers.events == [(2, "VoteResponse")]
    assert [host for host, _, _ in far.connects] == ["host2", "host3"]


@pytest.mark.trio
async def test_a_request_without_answer_in_time_fails_and_costs_the_connection(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """R-NET-3: error 8 after the time-out; a late answer must not meet the next request."""
    del autojump_clock
    far = FarSide(nursery)

    async def slow(request: Request) -> Message:
        del request
        await trio.sleep(3)
        return VoteResponse()

    far.handle = slow
    peers, answers = await start(far, nursery)
    began = trio.current_time()
    peers.send(request(1))
    await trio.sleep(2.5)
    assert answers.events == [(1, ErrorCode.BROKER_NOT_AVAILABLE)]
    far.handle = far._vote
    peers.send(request(2))
    await trio.sleep(5)
    assert answers.events[1:] == [(2, "VoteResponse")]
    assert len(far.connects) == 2
    assert far.stats.timeouts == 1
    assert trio.current_time() - began == pytest.approx(7.5)


@pytest.mark.trio
async def test_a_refused_connection_fails_at_once_and_backs_off(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """R-NET-1: attempts come 50 to 500 ms apart, and the core hears of each failure at once."""
    del autojump_clock
    far = FarSide(nursery)
    far.is_down = True
    peers, answers = await start(far, nursery)
    for number in range(200):
        peers.send(request(number))
        await trio.sleep(0.02)
    assert [error for _, error in answers.events] == [ErrorCode.BROKER_NOT_AVAILABLE] * 200
    times = [at for _, _, at in far.connects]
    gaps = [round(later - at, 2) for at, later in pairwise(times)]
    assert gaps[:4] == [0.06, 0.1, 0.2, 0.4]
    assert set(gaps[5:]) == {0.5}
    far.is_down = False
    await trio.sleep(0.5)
    peers.send(request(999))
    await trio.testing.wait_all_tasks_blocked()
    assert answers.events[-1] == (999, "VoteResponse")


@pytest.mark.trio
async def test_no_common_version_is_told_without_sending(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """Error 35 lets a prospective go on to a standard vote; the connection stays."""
    del autojump_clock
    far = FarSide(nursery)
    del far.versions[52]
    far.versions[1] = (4, 12)
    peers, answers = await start(far, nursery)
    for number, message in enumerate((VoteRequest(), FetchRequest())):
        peers.send(request(number, message))
        await trio.testing.wait_all_tasks_blocked()
    assert answers.events == [(0, 35), (1, 35)]
    assert far.requests == []
    assert len(far.connects) == 1


@pytest.mark.trio
async def test_forgotten_requests_are_not_answered_and_do_not_hold_up_new_ones(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """R-NET-6: a Fetch that the former leader has parked must not delay a vote."""
    del autojump_clock
    far = FarSide(nursery)

    async def park_first(request: Request) -> Message:
        del request
        if len(far.requests) == 1:
            await trio.sleep(1.9)
        return VoteResponse()

    far.handle = park_first
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    peers.send(request(2))
    await trio.sleep(0.1)
    peers.reset()
    began = trio.current_time()
    peers.send(request(3))
    await trio.testing.wait_all_tasks_blocked()
    assert answers.events == [(3, "VoteResponse")]
    assert trio.current_time() == began
    await trio.sleep(5)
    assert answers.events == [(3, "VoteResponse")]


@pytest.mark.trio
async def test_a_forgotten_request_leaves_its_connection_usable(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """Where nothing else has to be said, the answer is read and thrown away."""
    del autojump_clock
    far = FarSide(nursery)

    async def slow(request: Request) -> Message:
        del request
        await trio.sleep(1)
        return VoteResponse()

    far.handle = slow
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    await trio.testing.wait_all_tasks_blocked()
    peers.reset()
    await trio.sleep(1.5)
    peers.send(request(2))
    await trio.sleep(1.5)
    assert answers.events == [(2, "VoteResponse")]
    assert len(far.connects) == 1


@pytest.mark.trio
async def test_a_new_address_of_a_node_is_used(autojump_clock: Any, nursery: trio.Nursery) -> None:
    """Voters move; their id stays."""
    del autojump_clock
    far = FarSide(nursery)
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    await trio.testing.wait_all_tasks_blocked()
    peers.send(SendRequest(2, Destination(2, "elsewhere", 1), VoteRequest(), 2000))
    await trio.testing.wait_all_tasks_blocked()
    assert [(host, port) for host, port, _ in far.connects] == [("host2", 9093), ("elsewhere", 1)]
    assert answers.events == [(1, "VoteResponse"), (2, "VoteResponse")]


HOSTILE = {
    "nothing": b"",
    "text": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a negative length": struct.pack(">i", -5),
    "an endless frame": struct.pack(">i", 0x7FFFFFFF),
    "an empty frame": struct.pack(">i", 0),
    "another correlation id": struct.pack(">iih", 6, 4711, 0),
    "a cut answer": struct.pack(">iih", 6, 0, 0),
    "an error code": struct.pack(">iihi", 10, 0, 42, 0),
    "an unknown error code": struct.pack(">iihi", 10, 0, 999, 0),
    "no APIs at all": struct.pack(">iihi", 10, 0, 35, 0),
    "an array of two billion": struct.pack(">iihbbbbb", 11, 0, 0, -1, -1, -1, -1, 7),
}


@pytest.mark.trio
@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_answer_is_a_failed_request(
    autojump_clock: Any, nursery: trio.Nursery, kind: str
) -> None:
    """No answer of a peer, whatever its bytes, may end a node or make it spin."""
    del autojump_clock
    far = FarSide(nursery)

    async def hostile(stream: Any) -> None:
        await stream.receive_some(1000)
        with trio.move_on_after(10):
            await stream.send_all(HOSTILE[kind])
            await stream.receive_some(1000)
        await stream.aclose()

    far.serve = hostile
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    await trio.sleep(3)
    assert answers.events == [(1, ErrorCode.BROKER_NOT_AVAILABLE)]
    far.serve = far._serve
    peers.send(request(2))
    await trio.sleep(3)
    assert answers.events[1:] == [(2, "VoteResponse")]


@pytest.mark.trio
@pytest.mark.parametrize("host", ["", ".", "a..b", "\ud800", "x" * 300, "two words", "a\0b"])
async def test_an_address_that_is_none_is_a_failed_connection(host: str) -> None:
    """Endpoints of leaders and voters are words of peers."""
    with pytest.raises(OSError, match=r"\w"):
        await open_stream(host, 1)


@pytest.mark.trio
async def test_an_answer_that_cannot_be_read_is_counted(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """The counter tells a broken peer from a slow network."""
    del autojump_clock
    far = FarSide(nursery)

    async def bad_answer(stream: Any) -> None:
        await stream.receive_some(1000)
        await stream.send_all(struct.pack(">iih", 6, 0, 0))
        await stream.receive_some(1000)

    far.serve = bad_answer
    link = far.link()
    link.retarget("peer", 1)
    with pytest.raises(LinkDown):
        await link.exchange(VoteRequest())
    assert far.stats.bad_answers == 1


@pytest.mark.trio
async def test_a_link_tells_the_features_of_the_other_side(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """By them a node that never asks us anything is told from one of ours."""
    del autojump_clock
    far = FarSide(nursery)
    link = far.link()
    seen: list[frozenset[str]] = []
    link.on_negotiated = seen.append
    link.retarget("peer", 1)
    await link.exchange(VoteRequest())
    await link.exchange(VoteRequest())
    assert seen == [frozenset({"kraft.version"})]
    link.close()


@pytest.mark.trio
async def test_an_unsupported_api_is_an_error_of_its_own(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """Whoever forwards a request has to tell its client why."""
    del autojump_clock
    far = FarSide(nursery)
    link = far.link()
    link.retarget("peer", 1)
    with pytest.raises(ApiError) as caught:
        await link.exchange(FetchRequest())
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
    link.close()
