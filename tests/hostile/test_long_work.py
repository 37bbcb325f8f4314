"""Long work gets a share of a node's time, and so do thousands of connections (SEC-WORK)."""

from __future__ import annotations

import itertools
from typing import Any

import trio
import trio.testing

from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.node.admission import (
    DECODED_FACTOR,
    LONG_WORK_REST,
    LONG_WORK_REST_FEW,
    WorkQueue,
)
from kraftwire.node.context import Request
from kraftwire.wire.message import Message
from tests.hostile.secured import each_entry
from tests.hostile.served import Served, request_frame
from tests.support.suite.autojump import autojump

pytestmark = autojump

_MIB = 1024 * 1024


class Work:
    """Work in a queue, of one second of processor time each. `began` lists who began when."""

    def __init__(self, crowd: int = 1) -> None:
        self.seconds = 0.0
        self.began: list[tuple[int, float]] = []
        self.queue = WorkQueue(1e9, 1e9, crowd=crowd, clock=lambda: self.seconds)

    async def do(self, number: int, size: int = 1) -> None:
        await self.queue.admit(number, size)
        self.began.append((number, trio.current_time()))
        # As a thread that decodes does: the loop is free meanwhile.
        await trio.sleep(1)
        self.seconds += 1
        self.queue.finish()


async def test_a_rest_counts_what_threads_do() -> None:
    """It used to count only what the loop itself did, so decoding in a thread was free."""
    work = Work()
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(work.do, number)
    times = [at for _, at in work.began]
    assert [b - a for a, b in itertools.pairwise(times)] == [1 + LONG_WORK_REST] * 2


async def test_a_few_do_not_rest() -> None:
    """Followers under load ask for long answers all the time."""
    work = Work(crowd=3)
    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(work.do, number)
    times = [at for _, at in work.began]
    few = 1 + LONG_WORK_REST_FEW
    assert [b - a for a, b in itertools.pairwise(times)] == [1 + LONG_WORK_REST] * 2 + [few] * 2


async def test_the_oldest_connection_waits_for_one_other_at_most() -> None:
    """Replicas that catch up have been connected since before the attack."""
    work = Work()
    async with trio.open_nursery() as nursery:
        for number in range(10, 40):
            nursery.start_soon(work.do, number)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(work.do, 1)
    order = [number for number, _ in work.began]
    assert order.index(1) <= 2


async def test_short_work_waits_for_as_much_as_it_is() -> None:
    """It used to wait for all that had come before it, however much longer that was."""
    work = Work()
    async with trio.open_nursery() as nursery:
        for number in range(10, 40):
            nursery.start_soon(work.do, number, 8000)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(50, 58):
            nursery.start_soon(work.do, number, 1000)
    places = [place for place, (number, _) in enumerate(work.began) if number >= 50]
    # One huge one for as many bytes of short ones, and every second turn is the oldest's.
    assert places[0] <= 4
    assert places[-1] <= 2 * (8 + 2)


async def test_a_kind_that_was_idle_saves_nothing_up() -> None:
    """Short work that comes after much long work shares with it from then on."""
    work = Work()
    async with trio.open_nursery() as nursery:
        for number in range(50, 70):
            nursery.start_soon(work.do, number, 8000)
        await trio.sleep(60)
        done = len(work.began)
        # Every second turn is theirs already, because they have lower numbers.
        for number in range(10, 50):
            nursery.start_soon(work.do, number, 1000)
    later = [number for number, _ in work.began[done : done + 2 * (8 + 2)]]
    assert any(number >= 50 for number in later)


async def test_work_that_is_cancelled_leaves_the_queue() -> None:
    """It may be waiting, or have had its turn without using it."""
    work = Work()
    async with trio.open_nursery() as nursery:
        scopes = [trio.CancelScope() for _ in range(4)]

        async def give_up(number: int) -> None:
            with scopes[number]:
                await work.queue.admit(number, 1)
                scopes[number].cancel()
                try:
                    await trio.sleep(1)
                finally:
                    work.queue.finish()

        for number in range(4):
            nursery.start_soon(give_up, number)
        await trio.testing.wait_all_tasks_blocked()
        scopes[3].cancel()
    with trio.fail_after(10):
        await work.do(9)


async def test_a_request_counts_as_the_objects_that_it_becomes(nursery: trio.Nursery) -> None:
    """While it waits for its turn, and until it is answered: the bytes alone are an eighth."""
    used: list[int] = []

    async def answer(_: Request) -> Message:
        used.append(served.budget.used)
        await trio.sleep(1)
        return MetadataResponse()

    served = Served(nursery, answer)
    topics = [MetadataRequestTopic(name="t" * 100) for _ in range(100)]
    data = request_frame(MetadataRequest(topics=topics), 8)
    streams = [served.connect() for _ in range(5)]
    for stream in streams:
        nursery.start_soon(stream.send_all, data)
    for stream in streams:
        assert await stream.receive_some(4)
    assert used[0] >= len(streams) * DECODED_FACTOR * (len(data) - 4)


@each_entry
async def test_answers_are_read_one_at_a_time(nursery: trio.Nursery, entry: str) -> None:
    """100 Fetches of a log of 12 MiB were read at once: 800 MiB, and 17 times the latency."""
    read, most = [0], [0]

    async def answer(request: Request) -> Message:
        await request.admit(_MIB)
        read[0] += 1
        most[0] = max(most[0], read[0])
        await trio.lowlevel.checkpoint()
        read[0] -= 1
        return _fetched(_MIB)

    served = Served(nursery, answer, limit=64 * _MIB, entry=entry)
    streams = [await served.join() for _ in range(30)]
    for stream in streams:
        await stream.send_all(_FETCH)
    for stream in streams:
        assert await stream.receive_some(4)
    assert most == [1]


async def test_an_answer_that_was_taken_is_let_go(nursery: trio.Nursery) -> None:
    """Connections that waited for something else kept their last answers, uncounted: 500 MiB."""
    made = list[bytes]()

    async def answer(_: Request) -> Message:
        if made:
            await trio.sleep_forever()
        made.append(b"x")
        return MetadataResponse(cluster_id="y" * 30_000)

    served = Served(nursery, answer)
    stream = served.connect()
    await stream.send_all(_METADATA)
    answered = await stream.receive_some(1 << 20)
    await stream.send_all(_METADATA)
    await trio.testing.wait_all_tasks_blocked()
    (task,) = (one for one in nursery.child_tasks if "serve" in one.name)
    assert not _holds(task.coro, len(answered)), "the answer is still there"


def _holds(coroutine: Any, size: int) -> bool:
    """Whether a local variable of a coroutine, or of one that it awaits, holds this many bytes."""
    while coroutine is not None and getattr(coroutine, "cr_frame", None) is not None:
        values = coroutine.cr_frame.f_locals.values()
        if any(isinstance(one, bytes) and len(one) == size for one in values):
            return True
        coroutine = coroutine.cr_await
    return False


async def test_requests_that_wait_for_another_are_counted(nursery: trio.Nursery) -> None:
    """A peer sends 64 KiB of them at a time, and one is answered after the other."""

    async def wait(_: Request) -> Message:
        await trio.sleep_forever()
        return MetadataResponse()

    served = Served(nursery, wait)
    stream = served.connect()
    await stream.send_all(_METADATA * 1000)
    await trio.testing.wait_all_tasks_blocked()
    assert served.budget.used > 999 * len(_METADATA)


async def test_thousands_that_leave_at_once_are_cleared_in_several_turns(
    nursery: trio.Nursery
) -> None:
    """All in one round of the loop took half a second, in which nothing was committed."""
    served = Served(nursery)
    streams = [await served.join() for _ in range(300)]
    await trio.testing.wait_all_tasks_blocked()
    for stream in streams:
        stream.socket.close()
    left = []
    while not left or left[-1] < len(streams):
        left.append(sum(served.ended.values()))
        await trio.lowlevel.checkpoint()
    assert max(b - a for a, b in itertools.pairwise(left)) <= 32


def _fetched(size: int) -> FetchResponse:
    partition = PartitionData(records=bytes(size))
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])


_FETCH = request_frame(FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()])]), 12)
_METADATA = request_frame(MetadataRequest(), 8)
