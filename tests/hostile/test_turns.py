"""A flood of short requests delays itself, not others (SEC-TURNS)."""

from __future__ import annotations

import trio
import trio.testing

from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.node.context import Request
from kraftwire.transport.rate_gate import REQUEST_COST_BYTES, TURN_BYTES, RateGate
from kraftwire.wire.message import Message
from tests.hostile.secured import each_entry
from tests.hostile.served import Served, request_frame
from tests.support.suite.autojump import autojump

pytestmark = autojump

_PER_TURN = TURN_BYTES // REQUEST_COST_BYTES


@each_entry
async def test_few_are_answered_in_one_round_of_the_loop(nursery: trio.Nursery, entry: str) -> None:
    """One round of the loop used to answer a request of every connection that had one."""
    rounds, answered = [0], list[int]()

    async def note(_: Request) -> Message:
        answered.append(rounds[0])
        return MetadataResponse()

    served = Served(nursery, note, entry=entry)
    flood = [await served.join() for _ in range(100)]
    await trio.testing.wait_all_tasks_blocked()
    counter = trio.CancelScope()

    async def look() -> None:
        with counter:
            while True:
                await trio.lowlevel.checkpoint()
                rounds[0] += 1

    data = request_frame(MetadataRequest(topics=[]), 8)
    async with trio.open_nursery() as senders:
        senders.start_soon(look)
        for stream in flood:
            senders.start_soon(stream.send_all, data)
        while len(answered) < len(flood):
            await trio.lowlevel.checkpoint()
        counter.cancel()
    most = max(answered.count(each) for each in set(answered))
    assert most <= 2 * _PER_TURN


async def test_one_round_of_the_loop_lets_two_of_the_longest_through(nursery: trio.Nursery) -> None:
    """Short work of TURN_BYTES takes a round's share by itself; only the oldest half may add to it.
    """
    gate, rounds, passed = RateGate(), [0], list[int]()

    async def ask(number: int) -> None:
        await gate.wait_turn(number, TURN_BYTES - 1)
        passed.append(rounds[0])

    for number in range(40):
        nursery.start_soon(ask, number)
    while len(passed) < 40:
        await trio.lowlevel.checkpoint()
        rounds[0] += 1
    assert max(passed.count(each) for each in set(passed)) <= _PER_TURN // 2


async def test_the_oldest_connections_are_not_at_the_end_of_the_queue(
    nursery: trio.Nursery
) -> None:
    """Replicas' connections have been open since before the flood."""
    gate, order = RateGate(), list[int]()

    async def ask(number: int) -> None:
        await gate.wait_turn(number, 0)
        order.append(number)

    for number in range(1000, 1200):
        nursery.start_soon(ask, number)
    await trio.lowlevel.checkpoint()
    for number in (1, 2):
        nursery.start_soon(ask, number)
    while len(order) < 202:
        await trio.lowlevel.checkpoint()
    assert max(order.index(1), order.index(2)) < 5 * _PER_TURN


async def test_no_request_is_left_waiting(nursery: trio.Nursery) -> None:
    """Requests that are cancelled leave the queue, and those of a later flood get turns again."""
    gate, done = RateGate(), list[int]()

    async def ask(number: int) -> None:
        await gate.wait_turn(number, 0)
        done.append(number)

    for _ in range(2):
        async with trio.open_nursery() as flood:
            for number in range(100):
                flood.start_soon(ask, number)
            await trio.lowlevel.checkpoint()
            flood.cancel_scope.cancel()
        done.clear()
        for number in range(100):
            nursery.start_soon(ask, number)
        while len(done) < 100:
            await trio.lowlevel.checkpoint()
        assert set(done) == set(range(100))
