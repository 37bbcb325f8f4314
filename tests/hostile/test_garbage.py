"""Garbage collection does not stop a node, and memory is given back (SEC-MEMORY, SEC-TURNS)."""

from __future__ import annotations

import gc

import pytest
import trio
import trio.testing

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.node.admission import OPEN_CONNECTION_BYTES, MemoryBudget
from kraftwire.node.collector import (
    COLLECT_CONNECTIONS_MIN,
    COLLECT_LOOK_SECONDS,
    COLLECT_OBJECTS,
    COLLECT_REST,
    COLLECT_SECONDS,
    RELEASED_BYTES_MIN,
    Collector,
    new_objects,
)
from kraftwire.node.connection import AcceptedConnection
from kraftwire.node.context import Request
from kraftwire.transport.paced_stream import PeerGone
from kraftwire.wire.message import Message
from tests.hostile.served import Served, request_frame
from tests.support.suite.autojump import autojump

pytestmark = pytest.mark.trio


class Process:
    """What a collector sees of a process and does to it; collecting takes a while."""

    def __init__(self, collecting_seconds: float = 0.01) -> None:
        self.connections = self.held_bytes = self.new_objects = 0
        self.collected: list[float] = []
        self.given_back: list[float] = []
        self.seconds = 0.0
        self._takes = collecting_seconds
        self.collector = Collector(
            lambda: self.connections,
            lambda: self.held_bytes,
            new_objects=lambda: self.new_objects,
            collect=self._collect,
            release_memory=lambda: self.given_back.append(trio.current_time()),
            clock=lambda: self.seconds,
        )

    def _collect(self) -> None:
        self.seconds += self._takes
        self.new_objects = 0
        self.collected.append(trio.current_time())


@autojump
async def test_a_crowd_is_not_scanned(nursery: trio.Nursery) -> None:
    """With thousands of connections it takes half a second: ten times the p99 of commits."""
    process = Process(collecting_seconds=0.5)
    nursery.start_soon(process.collector.run)
    await trio.testing.wait_all_tasks_blocked()
    assert not gc.isenabled()
    assert gc.get_freeze_count()
    for count in (4_000, 2_000, 4_300, 1_000, 4_000):
        process.connections = count
        await trio.sleep(100)
    assert len(process.collected) == 1
    process.connections = 0
    await trio.sleep(2 * COLLECT_LOOK_SECONDS)
    assert len(process.collected) == 2


@autojump
async def test_collections_are_rare(nursery: trio.Nursery) -> None:
    """However long they take."""
    process = Process(collecting_seconds=0.15)
    nursery.start_soon(process.collector.run)
    await trio.sleep(1000)
    first, *rest = process.collected[1:]
    assert first <= process.collected[0] + COLLECT_SECONDS + COLLECT_LOOK_SECONDS
    gaps = [b - a for a, b in zip([first, *rest], rest, strict=False)]
    assert gaps
    assert min(gaps) >= 0.15 * COLLECT_REST


@autojump
async def test_a_crowd_that_has_left_leaves_nothing(nursery: trio.Nursery) -> None:
    """Within two checks, which is well within ten seconds."""
    process = Process()
    nursery.start_soon(process.collector.run)
    process.connections, process.held_bytes = COLLECT_CONNECTIONS_MIN, RELEASED_BYTES_MIN
    await trio.sleep(2 * COLLECT_LOOK_SECONDS)
    assert (len(process.collected), process.given_back) == (1, [])
    process.held_bytes = 0
    await trio.sleep(2 * COLLECT_LOOK_SECONDS)
    assert (len(process.collected), len(process.given_back)) == (1, 1)
    process.connections = 4
    await trio.sleep(2 * COLLECT_LOOK_SECONDS)
    assert (len(process.collected), len(process.given_back)) == (2, 2)
    await trio.sleep(5 * COLLECT_LOOK_SECONDS)
    assert len(process.given_back) == 2


@autojump
async def test_garbage_is_bounded(nursery: trio.Nursery) -> None:
    """Whatever makes cycles, they do not stay for a minute if they are many."""
    process = Process(collecting_seconds=0.15)
    nursery.start_soon(process.collector.run)
    await trio.sleep(COLLECT_SECONDS + 1)
    before = len(process.collected)
    for _ in range(3):
        process.new_objects = COLLECT_OBJECTS
        await trio.sleep(2 * COLLECT_LOOK_SECONDS)
    assert len(process.collected) == before + 3


async def test_new_objects_are_counted_while_nothing_is_collected() -> None:
    """The bound depends on it."""
    gc.disable()
    try:
        before = new_objects()
        made = [[number] for number in range(1000)]
        assert new_objects() >= before + 900
        assert len(made) == 1000
    finally:
        gc.enable()


async def test_settings_of_the_process_are_restored() -> None:
    """For programs that run a node now and then."""
    before = gc.get_threshold()
    with trio.move_on_after(0):
        await Process().collector.run()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
    assert gc.isenabled()


async def test_a_peer_that_goes_leaves_no_cycle(nursery: trio.Nursery) -> None:
    """Each Fetch that waited left its connection to the garbage collector, which runs rarely."""

    async def wait(_: Request) -> Message:
        await trio.sleep_forever()
        return FetchResponse()

    served = Served(nursery, wait)
    (listening,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    peer = trio.socket.socket()
    await peer.connect(listening.socket.getsockname())
    served.serve(await listening.accept())
    await listening.aclose()
    await peer.send(request_frame(FetchRequest(), 12))
    await trio.testing.wait_all_tasks_blocked()
    gc.collect()
    gc.disable()
    try:
        peer.close()
        with trio.fail_after(10):
            while not served.ended:
                await trio.sleep(0.01)
        assert not {type(one) for one in gc.get_objects()} & {PeerGone, AcceptedConnection}
    finally:
        gc.enable()


async def test_open_connections_are_part_of_the_sum() -> None:
    """The memory that Python needs for thousands of them was not counted."""
    budget = MemoryBudget(10 * OPEN_CONNECTION_BYTES)
    for _ in range(9):
        budget.add_connection()
    assert budget.used == 9 * OPEN_CONNECTION_BYTES
    greedy = _Holder()
    budget.hold(greedy, OPEN_CONNECTION_BYTES + 1)
    assert greedy.is_evicted
    for _ in range(9):
        budget.remove_connection()
    assert budget.used == 0


class _Holder:
    is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True
