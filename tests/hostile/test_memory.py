"""The memory of all connections is bounded, at no cost to honest peers (SEC-MEMORY)."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftwire.node.admission import EVICTED_BYTES_MIN, MemoryBudget
from kraftwire.node.context import Request
from kraftwire.transport.accepted_stream import PIECE_BYTES, AcceptedStream
from kraftwire.wire.message import Message
from tests.hostile.secured import SECURED, each_entry
from tests.hostile.served import Served, request_frame
from tests.support.suite.autojump import autojump

_MIB = 1024 * 1024
# More than TLS adds to the records of a piece.
_RECORD_BYTES = 1024

_TOPIC = MetadataResponseTopic(name="t" * 30_000)


class Holder:
    """Holds bytes until it is evicted."""

    def __init__(self) -> None:
        self.is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True


def test_the_oldest_are_given_up_first() -> None:
    """A peer that reads its answers is never among them."""
    budget, holders = MemoryBudget(3 * _MIB), [Holder() for _ in range(5)]
    for holder in holders:
        budget.hold(holder, _MIB)
    assert [one.is_evicted for one in holders] == [True, True, False, False, False]
    assert budget.used == 3 * _MIB


def test_a_few_bytes_are_given_up_last() -> None:
    """Thousands of idle connections do not justify keeping one large answer."""
    budget = MemoryBudget(2 * EVICTED_BYTES_MIN)
    idle = [Holder() for _ in range(100)]
    for holder in idle:
        budget.hold(holder, 10)
    greedy = [Holder(), Holder()]
    for holder in greedy:
        budget.hold(holder, EVICTED_BYTES_MIN)
    assert not any(one.is_evicted for one in idle)
    assert [one.is_evicted for one in greedy] == [True, False]


def test_what_was_released_no_longer_counts() -> None:
    """By size and by holder; an evicted holder that releases its bytes is not counted twice."""
    budget, first, second = MemoryBudget(_MIB), Holder(), Holder()
    budget.hold(first, 100)
    budget.hold(first, 40)
    assert budget.used == 40
    budget.hold(second, _MIB)
    assert (first.is_evicted, second.is_evicted) == (False, True)
    budget.hold(second, 0)
    budget.hold(first, 0)
    assert budget.used == 0


@each_entry
@autojump
async def test_incomplete_requests_evict_each_other(nursery: trio.Nursery, entry: str) -> None:
    """They do not evict the request of a connection that comes later."""
    served = Served(nursery, limit=10 * _MIB, entry=entry)
    head = (2 * _MIB).to_bytes(4, "big")
    slow = [await served.join() for _ in range(20)]
    for stream in slow:
        await stream.send_all(head + bytes(_MIB))
        await trio.testing.wait_all_tasks_blocked()
    assert served.ended == {"no-memory": 10 + 1}
    assert served.budget.used <= 10 * _MIB
    honest = await served.join()
    await honest.send_all(request_frame(MetadataRequest(), 8))
    assert await honest.receive_some(10)


@each_entry
@autojump
async def test_answers_that_are_not_read_are_bounded(nursery: trio.Nursery, entry: str) -> None:
    """Eight requests of 150 bytes each made a node hold a gigabyte."""

    async def large(_: Request) -> Message:
        return MetadataResponse(cluster_id="x" * 30_000)

    served = Served(nursery, large, limit=_MIB, entry=entry)
    topics = [MetadataRequestTopic(name="t")]
    for _ in range(100):
        stream = await served.join()
        await stream.send_all(request_frame(MetadataRequest(topics=topics), 8))
        await trio.testing.wait_all_tasks_blocked()
    assert served.budget.used <= _MIB
    assert served.ended["no-memory"] > 0


@autojump
async def test_tls_keeps_no_long_answers(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL's buffers stay as large as they were: a connection kept 2 MiB to its end."""
    encrypted, sent = list[int](), list[int]()

    async def large(_: Request) -> Message:
        return MetadataResponse(cluster_id="x" * 30_000, topics=[_TOPIC] * 10)

    send_all, take_outgoing = trio.SocketStream.send_all, AcceptedStream.take_outgoing

    async def send(stream: trio.SocketStream, data: bytes) -> None:
        sent.append(len(data))
        await send_all(stream, data)

    def take(stream: AcceptedStream) -> bytes:
        taken = take_outgoing(stream)
        encrypted.append(len(taken))
        return taken

    served = Served(nursery, large, entry=SECURED)
    stream = await served.join()
    monkeypatch.setattr(AcceptedStream, "take_outgoing", take)
    monkeypatch.setattr(trio.SocketStream, "send_all", send)
    await stream.send_all(request_frame(MetadataRequest(), 8))
    read = 0
    while read < 300_000:
        read += len(await stream.receive_some(1 << 20))
    assert max(encrypted) <= PIECE_BYTES + _RECORD_BYTES < 300_000 < sum(encrypted)
    # As one piece of work, whose time the next one waits for.
    assert max(sent) > 300_000
