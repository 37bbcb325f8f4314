"""What waits ends with its connection, or soon (SEC-WAIT)."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.node.context import Request
from kraftwire.raft.events import RequestAbandoned, RequestReceived
from kraftwire.wire.message import Message
from tests.hostile.served import Served, request_frame
from tests.support.raft_nodes import LISTENER
from tests.support.raft_quorums import leading
from tests.support.raft_talk import fetch


class Waiting:
    """Answers no Fetch, and counts those that wait."""

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


@pytest.mark.trio
async def test_a_fetch_ends_when_its_connection_is_closed(nursery: trio.Nursery) -> None:
    """It used to wait for as long as it said: up to 25 days."""
    waiting = Waiting()
    served = Served(nursery, waiting.answer)
    (listening,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = listening.socket.getsockname()
    streams = []
    for _ in range(3):
        streams.append(await trio.open_tcp_stream(*address[:2]))
        served.serve(await listening.accept())
    for stream in streams:
        await stream.send_all(request_frame(FetchRequest(max_wait_ms=(1 << 31) - 1), 12))
    await waiting.reach(3)
    await streams[0].aclose()
    await waiting.reach(2)
    await streams[1].send_eof()
    await waiting.reach(1)
    for stream in streams:
        await stream.aclose()
    await waiting.reach(0)
    await trio.testing.wait_all_tasks_blocked()
    assert served.ended == {"by-peer": 3}
    await listening.aclose()


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
