"""Requests to other nodes: one at a time, within their time, whatever the other side answers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.node.context import Request
from kraftwire.node.peers import PEERS_MAX
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import Destination, SendRequest
from kraftwire.wire.message import Message
from tests.support.nodes.far_side import FarSide, request, start
from tests.support.suite.autojump import autojump

pytestmark = autojump


async def test_a_connection_is_made_once_and_versions_are_negotiated(nursery: trio.Nursery) -> None:
    """R-NET-1, R-NET-2: one connection per destination, the highest common version."""
    far = FarSide(nursery)
    far.versions[52] = (0, 1)
    peers, answers = await start(far, nursery)
    for number in (1, 2, 3):
        peers.send(request(number))
        await trio.testing.wait_all_tasks_blocked()
    assert answers.events == [(1, "VoteResponse"), (2, "VoteResponse"), (3, "VoteResponse")]
    assert len(far.connects) == 1
    assert far.requests == [("VoteRequest", 1)] * 3


OLD, NEW = Destination(2, "old", 9093, b"o" * 16), Destination(2, "new", 9093, b"n" * 16)


@pytest.mark.parametrize(
    ("held", "others"),
    [
        pytest.param(request(1), [request(2, peer=3)], id="another node"),
        pytest.param(request(1), [request(2, ApiVersionsRequest())], id="a probe of the node"),
        pytest.param(
            # A voter whose disk was replaced has its old id.
            SendRequest(1, OLD, VoteRequest(), 2000),
            [SendRequest(2, NEW, VoteRequest(), 2000), SendRequest(3, NEW, VoteRequest(), 2000)],
            id="the same id at another address",
        ),
    ],
)
async def test_destinations_do_not_wait_for_each_other(
    nursery: trio.Nursery, held: SendRequest, others: list[SendRequest]
) -> None:
    """A parked Fetch, or a peer that hangs, must not hold up votes, and keeps its connection."""
    far = FarSide(nursery)
    release = trio.Event()

    async def hold_the_first(_: Request) -> Message:
        if len(far.requests) == 1:
            await release.wait()
        return VoteResponse()

    far.handle = hold_the_first
    peers, answers = await start(far, nursery)
    peers.send(held)
    await trio.sleep(0.1)
    for other in others:
        peers.send(other)
    await trio.sleep(0.1)
    assert [number for number, _ in answers.events] == [other.request_id for other in others]
    release.set()
    await trio.sleep(0.1)
    peers.send(SendRequest(4, held.destination, VoteRequest(), 2000))
    await trio.sleep(0.1)
    assert answers.events[len(others) :] == [(1, "VoteResponse"), (4, "VoteResponse")]
    assert len(far.connects) == 2


async def test_a_request_without_answer_in_time_fails_and_costs_the_connection(
    nursery: trio.Nursery
) -> None:
    """R-NET-3: error 8 after the time-out; a late answer must not be taken for the next one."""
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


async def test_a_refused_connection_fails_at_once_and_backs_off(nursery: trio.Nursery) -> None:
    """R-NET-1: attempts are 50 to 500 ms apart, and the core gets each failure at once."""
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


async def test_a_missing_common_version_is_reported_without_sending(nursery: trio.Nursery) -> None:
    """Error 35 lets a prospective continue with a standard vote; the connection stays."""
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


@pytest.mark.parametrize(("pause_s", "connects"), [(0.0, 2), (2.0, 1)])
async def test_forgotten_requests_are_not_answered_and_do_not_hold_up_new_ones(
    nursery: trio.Nursery, pause_s: float, connects: int
) -> None:
    """R-NET-6: a Fetch that the former leader has parked must not delay a vote. If nothing else has
    to be sent, its answer is read and discarded, and the connection stays usable."""
    far = FarSide(nursery)

    async def park_first(_: Request) -> Message:
        if len(far.requests) == 1:
            await trio.sleep(1.9)
        return VoteResponse()

    far.handle = park_first
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    peers.send(request(2))
    await trio.sleep(0.1)
    peers.reset()
    await trio.sleep(pause_s)
    began = trio.current_time()
    peers.send(request(3))
    await trio.testing.wait_all_tasks_blocked()
    assert answers.events == [(3, "VoteResponse")]
    assert trio.current_time() == began
    await trio.sleep(5)
    assert answers.events == [(3, "VoteResponse")]
    assert len(far.connects) == connects


async def test_a_new_address_of_a_node_is_used(nursery: trio.Nursery) -> None:
    """Voters move; their id stays."""
    far = FarSide(nursery)
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    await trio.testing.wait_all_tasks_blocked()
    peers.send(SendRequest(2, Destination(2, "elsewhere", 1), VoteRequest(), 2000))
    await trio.testing.wait_all_tasks_blocked()
    assert [(host, port) for host, port, _ in far.connects] == [("host2", 9093), ("elsewhere", 1)]
    assert answers.events == [(1, "VoteResponse"), (2, "VoteResponse")]


async def test_a_probe_of_a_node_uses_a_new_connection(nursery: trio.Nursery) -> None:
    """The node's answer at connection time may be old: it may be down by now."""
    far = FarSide(nursery)
    peers, answers = await start(far, nursery)
    for number in (1, 2):
        peers.send(request(number, ApiVersionsRequest()))
        await trio.sleep(1)
    far.is_down = True
    peers.send(request(3, ApiVersionsRequest()))
    await trio.sleep(1)
    assert answers.events == [
        (1, "ApiVersionsResponse"),
        (2, "ApiVersionsResponse"),
        (3, ErrorCode.BROKER_NOT_AVAILABLE),
    ]
    assert len(far.connects) == 3
    assert answers.features == [{"kraft.version"}, {"kraft.version"}]


async def test_a_probe_without_answer_holds_up_nothing(nursery: trio.Nursery) -> None:
    """A voter that accepts connections and is silent."""
    far = FarSide(nursery)
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    await trio.sleep(0.1)

    async def silent(stream: Any) -> None:
        await stream.receive_some(1000)
        await trio.sleep_forever()

    far.serve = silent
    peers.send(request(2, ApiVersionsRequest()))
    peers.send(request(3))
    await trio.sleep(0.1)
    assert answers.events == [(1, "VoteResponse"), (3, "VoteResponse")]
    await trio.sleep(2)
    assert answers.events[2:] == [(2, ErrorCode.BROKER_NOT_AVAILABLE)]


async def test_connections_to_old_addresses_are_closed(nursery: trio.Nursery) -> None:
    """Addresses come from peers: invented ones must not fill this node with connections."""
    far = FarSide(nursery)
    closed: list[int] = []

    async def counted(stream: Any) -> None:
        await far._serve(stream)
        closed.append(1)

    far.serve = counted
    peers, answers = await start(far, nursery)
    for number in range(5):
        peers.send(SendRequest(number, Destination(2, f"h{number}", 9093), VoteRequest(), 2000))
        await trio.sleep(0.1)
    assert len(closed) == 4
    for number in range(PEERS_MAX + 10):
        peers.send(SendRequest(number, Destination(9 + number, "h", 9), VoteRequest(), 2000))
        await trio.sleep(0.1)
    assert len(closed) == 4 + 11
    assert len(answers.events) == 5 + PEERS_MAX + 10


async def test_every_connection_reports_once_what_the_other_side_supports(
    nursery: trio.Nursery
) -> None:
    """This identifies a node of another implementation that never sends a request to this one."""
    far = FarSide(nursery)
    peers, answers = await start(far, nursery)
    for number, peer in ((1, 2), (2, 2), (3, 3)):
        peers.send(request(number, peer=peer))
        await trio.sleep(0.1)
    kraft = {"kraft.version 0-1"}
    assert answers.heard == [(2, kraft), (3, kraft)]
    assert [number for number, _ in answers.events] == [1, 2, 3]
