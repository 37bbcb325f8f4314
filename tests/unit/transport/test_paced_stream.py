"""Accepted connections are read in turns, and their ends are noticed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kraftwire.transport import paced_stream
from kraftwire.transport.paced_stream import ANSWER_SECONDS, PacedStream, PeerGone, Readiness
from kraftwire.transport.rate_gate import TURN_REQUESTS

pytestmark = pytest.mark.trio


class _Pairs:
    """Connections on loopback, as the node has them and as their peers do; numbered from 1."""

    def __init__(self, listener: trio.SocketListener) -> None:
        self.peers: list[trio.SocketStream] = []
        self._streams: list[trio.SocketStream] = []
        self.readiness = Readiness()
        self._listener = listener

    async def open(self) -> PacedStream:
        self.peers.append(await trio.open_tcp_stream(*self._listener.socket.getsockname()))
        self._streams.append(await self._listener.accept())
        return PacedStream(self._streams[-1], self.readiness, len(self.peers))

    def close(self) -> None:
        for stream in self.peers + self._streams:
            stream.socket.close()


@asynccontextmanager
async def _pairs() -> AsyncIterator[_Pairs]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        pairs = _Pairs(listener)
        yield pairs
        pairs.close()


@asynccontextmanager
async def _counted_rounds() -> AsyncIterator[list[int]]:
    """The number of rounds of the event loop since the beginning, in a list of one."""
    rounds = [0]

    async def count() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            rounds[0] += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        yield rounds
        nursery.cancel_scope.cancel()


async def test_many_that_end_at_once_are_resumed_in_turns() -> None:
    """One round resumed all tasks: with thousands, it took a second."""
    resumed = list[int]()
    async with _pairs() as pairs:
        streams = [await pairs.open() for _ in range(100)]
        async with _counted_rounds() as rounds, trio.open_nursery() as readers:

            async def read(stream: PacedStream) -> None:
                await stream.readable()
                resumed.append(rounds[0])

            for stream in streams:
                readers.start_soon(read, stream)
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            for peer in pairs.peers:
                peer.socket.close()
    assert len(resumed) == 100
    assert max(resumed.count(each) for each in resumed) <= 2 * TURN_REQUESTS


async def test_requests_come_before_ends() -> None:
    """Whoever has left can wait, however long its connection was open."""
    order = list[int]()
    async with _pairs() as pairs:
        streams = [await pairs.open() for _ in range(60)]
        async with trio.open_nursery() as readers:

            async def read(number: int, stream: PacedStream) -> None:
                await stream.readable()
                order.append(number)

            for number, stream in enumerate(streams):
                readers.start_soon(read, number, stream)
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            for peer in pairs.peers[:-1]:
                peer.socket.close()
            await pairs.peers[-1].send_all(b"request")
    assert order.index(59) <= 2 * TURN_REQUESTS


async def test_a_wait_that_was_given_up_leaves_nothing() -> None:
    """A deadline ends one wait; the next one gets what came in between, once."""
    async with _pairs() as pairs:
        stream = await pairs.open()
        with trio.move_on_after(0):
            await stream.receive_some(10)
        await pairs.peers[0].send_all(b"later")
        assert await stream.receive_some(10) == b"later"
        await pairs.peers[0].send_eof()
        assert await stream.receive_some(10) == b""


async def test_a_descriptor_that_is_used_again() -> None:
    """The system gives the lowest free number, so the next connection has it."""
    async with _pairs() as pairs:
        first = await pairs.open()
        descriptor = first.transport_stream.socket.fileno()
        with trio.move_on_after(0):
            await first.readable()
        await first.transport_stream.aclose()
        second = await pairs.open()
        if second.transport_stream.socket.fileno() != descriptor:
            pairs.peers.pop(0).socket.close()
            second = await pairs.open()
        await pairs.peers[-1].send_all(b"new")
        assert await second.receive_some(10) == b"new"


@pytest.mark.parametrize("is_half", [True, False])
async def test_work_ends_with_its_connection(is_half: bool) -> None:
    """Bytes that wait to be read hide nothing."""
    async with _pairs() as pairs:
        stream = await pairs.open()
        await pairs.peers[0].send_all(b"the next request")
        async with trio.open_nursery() as nursery:
            if is_half:
                nursery.start_soon(pairs.peers[0].send_eof)
            else:
                nursery.start_soon(pairs.peers[0].aclose)
            with pytest.raises(PeerGone):
                await stream.while_open(trio.sleep_forever)
        assert await stream.receive_some(100) == b"the next request"


async def test_work_that_ends_before_its_connection() -> None:
    """Its result is returned, and its error raised, as without a stream."""

    async def answer() -> int:
        await trio.lowlevel.checkpoint()
        return 5

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("no answer")

    async with _pairs() as pairs:
        stream = await pairs.open()
        assert await stream.while_open(answer) == 5
        with pytest.raises(ValueError, match="no answer"):
            await stream.while_open(fail)
        await pairs.peers[0].send_all(b"next")
        assert await stream.receive_some(10) == b"next"


async def test_an_answer_that_is_ready_soon_is_not_lost() -> None:
    """A peer that ends what it sends, as `nc -N` does, got an answer or none by chance."""
    async with _pairs() as pairs:
        stream = await pairs.open()
        await pairs.peers[0].send_eof()

        async def answer() -> bytes:
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            return b"answer"

        await stream.send_all(await stream.while_open(answer))
        assert await pairs.peers[0].receive_some(10) == b"answer"


async def test_work_that_has_waited_ends_in_turn(mock_clock: trio.testing.MockClock) -> None:
    """With a delay of its own for each, thousands that ended together were cancelled at once."""
    ended = list[int]()
    async with _pairs() as pairs:
        streams = [await pairs.open() for _ in range(100)]
        async with _counted_rounds() as rounds, trio.open_nursery() as nursery:

            async def wait(stream: PacedStream) -> None:
                with pytest.raises(PeerGone):
                    await stream.while_open(trio.sleep_forever)
                ended.append(rounds[0])

            for stream in streams:
                nursery.start_soon(wait, stream)
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            mock_clock.jump(ANSWER_SECONDS)
            for peer in pairs.peers:
                peer.socket.close()
            for _ in range(1000):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(ended) == 100
    assert max(ended.count(each) for each in ended) <= 2 * TURN_REQUESTS


async def test_a_node_that_ends_before_its_event_loop_leaves_no_task() -> None:
    """Each restart in one event loop left a descriptor and a task."""
    async with _pairs() as pairs:
        stream, tasks = await pairs.open(), _system_tasks()
        for _ in range(2):
            with trio.move_on_after(0):
                await stream.readable()
            assert _system_tasks() == tasks + 1
            pairs.readiness.close()
            await trio.testing.wait_all_tasks_blocked()
            assert _system_tasks() == tasks


def _system_tasks() -> int:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    return sum(len(nursery.child_tasks) for nursery in root.child_nurseries)


async def test_a_system_without_epoll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading goes on in turns; an answer is completed although its peer has left."""
    monkeypatch.setattr(paced_stream, "HAS_EPOLL", False)

    async def answer() -> int:
        await trio.lowlevel.checkpoint()
        return 5

    async with _pairs() as pairs:
        stream = await pairs.open()
        await pairs.peers[0].send_all(b"request")
        assert await stream.receive_some(10) == b"request"
        await pairs.peers[0].aclose()
        assert await stream.while_open(answer) == 5
        assert await stream.receive_some(10) == b""
