"""What waits ends with its connection, or soon (SEC-WAIT)."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.context import Request
from kraftwire.node.listener import Acceptor
from kraftwire.node.logs import RateLimit
from kraftwire.raft.effects import SendReply
from kraftwire.raft.events import AppendRequested, RequestAbandoned, RequestReceived
from kraftwire.raft.parked import PARKED_WOKEN_MAX
from kraftwire.wire.message import Message
from tests.hostile.secured import each_entry
from tests.hostile.served import Served, request_frame
from tests.support.raft.lone import leading
from tests.support.raft.messages import LISTENER, fetch


class Waiting:
    """Never answers a Fetch, and counts those that wait."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = trio.Event()

    def _move(self, by: int) -> None:
        self.count += by
        self.changed.set()
        self.changed = trio.Event()

    async def answer(self, _: Request) -> Message:
        self._move(1)
        try:
            await trio.sleep_forever()
        finally:
            self._move(-1)
        return FetchResponse()

    async def reach(self, count: int) -> None:
        with trio.fail_after(10):
            while self.count != count:
                await self.changed.wait()


@each_entry
@pytest.mark.trio
async def test_a_fetch_ends_when_its_connection_is_closed(
    nursery: trio.Nursery, entry: str
) -> None:
    """It used to wait for as long as it asked to: up to 25 days."""
    waiting = Waiting()
    served = Served(nursery, waiting.answer, entry=entry)
    (listening,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = listening.socket.getsockname()
    streams = []
    for _ in range(3):
        plain = await trio.open_tcp_stream(*address[:2])
        served.serve(await listening.accept())
        streams.append((plain, await served.enter(plain)))
    for _, stream in streams:
        await stream.send_all(request_frame(FetchRequest(max_wait_ms=(1 << 31) - 1), 12))
    await waiting.reach(3)
    # With TLS a last message comes before the end of the stream.
    await streams[0][1].aclose()
    await waiting.reach(2)
    await streams[1][0].send_eof()
    await waiting.reach(1)
    for plain, _ in streams:
        await plain.aclose()
    await waiting.reach(0)
    await trio.testing.wait_all_tasks_blocked()
    assert served.ended == {"by-peer": 3}
    await listening.aclose()


@pytest.mark.trio
async def test_a_fetch_ends_when_its_connection_breaks(nursery: trio.Nursery) -> None:
    """TCP gives up a peer that has vanished with an error, not with an end of the stream."""
    waiting = Waiting()
    served = Served(nursery, waiting.answer)
    (listening,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stream = await trio.open_tcp_stream(*listening.socket.getsockname()[:2])
    served.serve(await listening.accept())
    await stream.send_all(request_frame(FetchRequest(max_wait_ms=(1 << 31) - 1), 12))
    await waiting.reach(1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    stream.socket.close()
    await waiting.reach(0)
    await listening.aclose()


@pytest.mark.trio
async def test_bytes_after_a_request_do_not_hide_the_end(nursery: trio.Nursery) -> None:
    """With another request after it, a Fetch waited for half a minute after its peer was gone."""
    waiting = Waiting()
    served = Served(nursery, waiting.answer)
    (listening,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stream = await trio.open_tcp_stream(*listening.socket.getsockname()[:2])
    served.serve(await listening.accept())
    data = request_frame(FetchRequest(max_wait_ms=(1 << 31) - 1), 12)
    await stream.send_all(data)
    await waiting.reach(1)
    await stream.send_all(data)
    await stream.aclose()
    await waiting.reach(0)
    await listening.aclose()


@pytest.mark.trio
async def test_peers_that_say_nothing_are_probed(nursery: trio.Nursery) -> None:
    """A peer that loses power closes nothing: its connection stayed open for ever."""
    accepted: list[trio.SocketStream] = []
    (listening,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = listening.socket.getsockname()[:2]

    async def serve(stream: trio.SocketStream, _: str) -> None:
        accepted.append(stream)
        async with stream:
            await stream.receive_some(1)

    refusals = RateLimit(trio.current_time)
    acceptor = Acceptor(ConnectionLimits(), on_refused=lambda: None, refusals=refusals)
    nursery.start_soon(acceptor.run, [listening], serve)
    peer = await trio.open_tcp_stream(*address)
    await trio.testing.wait_all_tasks_blocked()
    with trio.fail_after(10):
        while not accepted:
            await trio.lowlevel.checkpoint()
    sock = accepted[0].socket
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        probes = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT)
        idle = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        every = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
        most_ms = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert idle + probes * every <= 30
        assert most_ms == 1000 * (idle + probes * every)
    await peer.aclose()


def test_a_commit_answers_voters_before_a_crowd() -> None:
    """Thousands of others that wait for the same commit are answered a few at a time
    (SEC-TURNS)."""
    lone = leading()
    core = lone.core
    end, epoch = core.end_offset, core.epoch
    crowd = range(1000, 1500)
    for token in crowd:
        request = fetch(-1, end, epoch, epoch, high_watermark=end, max_wait_ms=20_000)
        request.replica_state.replica_id = token
        lone.handle(RequestReceived(token, 17, request, LISTENER))
    voter = fetch(2, end, epoch, epoch, high_watermark=end, max_wait_ms=20_000)
    lone.handle(RequestReceived(1, 17, voter, LISTENER))
    before = len(lone.effects)
    lone.handle(AppendRequested(7, epoch, [b"x"], None))

    def answered() -> list[int]:
        return [one.token for one in lone.effects[before:] if isinstance(one, SendReply)]

    for _ in range(1000):
        if answered():
            break
        lone.wait(1)
    # Not even a few others come before it: their answers would delay each commit.
    assert answered()[0] == 1
    for _ in range(len(crowd) // PARKED_WOKEN_MAX + 1):
        lone.wait(0)
    assert set(crowd) <= set(answered())


def test_a_held_back_fetch_is_forgotten_with_its_connection() -> None:
    """4,300 of them kept 735 MB after their connections were closed."""
    lone = leading()
    core = lone.core
    tokens = range(100, 110)
    for token in tokens:
        end, epoch = core.end_offset, core.epoch
        request = fetch(2, end, epoch, epoch, high_watermark=end, max_wait_ms=20_000)
        lone.handle(RequestReceived(token, 17, request, LISTENER))
    assert len(core._state.parked) == len(tokens)
    for token in tokens:
        lone.handle(RequestAbandoned(token))
        lone.handle(RequestAbandoned(token))
    assert (len(core._state.parked), core._state.parked.next_deadline_ms) == (0, None)
