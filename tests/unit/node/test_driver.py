"""The task that owns the core: order of effects, flushes, replies, timers, the end."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.errors import ApiError, StorageError, UsageError
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.node.driver import FLUSH_IN_WORKER_BYTES_MIN
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from tests.support.nodes.fake_core import WALL_MS, FakeCore, Listener, World, batch, make, run, send
from tests.support.nodes.stub import request_of
from tests.support.suite.autojump import autojump


@autojump
async def test_effects_are_carried_out_in_order(nursery: trio.Nursery) -> None:
    """D1: a vote may be sent only after it is on disk; the order of the list guarantees that."""
    world = World()
    effects = [
        fx.PersistQuorumState(fx.ElectionState(3)),
        send(1),
        fx.AppendToLog(0, 1, b"x"),
        fx.TruncateLog(0),
        fx.ResetConnections(),
        send(2),
    ]
    driver = make(FakeCore(lambda _: effects), world)
    await run(driver, nursery)
    driver.submit(ev.ShutdownRequested())
    await trio.testing.wait_all_tasks_blocked()
    assert world.done == ["persist 3", "send 1", "append 0-1", "truncate 0", "reset", "send 2"]


@autojump
async def test_a_flush_is_answered_with_the_newest_values(nursery: trio.Nursery) -> None:
    """Several appends share one flush, which makes many small appends cheap."""
    world = World()

    def answer(event: ev.Event) -> list[fx.Effect]:
        if isinstance(event, ev.AppendRequested):
            return [fx.AppendToLog(event.token, event.token + 1, b""), fx.FlushLog(event.token, 7)]
        return []

    core = FakeCore(answer)
    driver = make(core, world)
    for _ in range(5):
        driver.append_nowait([b""], 1, lambda _: None)
    await run(driver, nursery)
    flushed = [event for event, _ in core.seen if isinstance(event, ev.LogFlushed)]
    assert flushed == [ev.LogFlushed(5, 7)]
    assert world.done.count("flush") == 1


@pytest.mark.trio
async def test_a_slow_disk_is_flushed_during_other_work(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    """While the disk works the core continues, and the next flush covers everything since."""
    monkeypatch.setattr("kraftwire.node.driver.FLUSH_INLINE_SECONDS", -1.0)
    world = World()
    more = trio.lowlevel.current_trio_token()

    def answer(event: ev.Event) -> list[fx.Effect]:
        return [fx.FlushLog(event.token, 0)] if isinstance(event, ev.AppendRequested) else []

    core = FakeCore(answer)
    driver = make(core, world)
    seen_during: list[int] = []

    def append_more() -> None:
        world.during_flush = lambda: None

        async def two_more() -> None:
            driver.append_nowait([b""], 1, lambda _: None)
            driver.append_nowait([b""], 1, lambda _: None)
            while len(core.seen) < 3:
                await trio.lowlevel.checkpoint()
            seen_during.append(len(core.seen))

        trio.from_thread.run(two_more, trio_token=more)

    world.during_flush = append_more
    driver.append_nowait([b""], 1, lambda _: None)
    nursery.start_soon(driver.run)
    with trio.fail_after(30):
        while sum(isinstance(event, ev.LogFlushed) for event, _ in core.seen) < 2:
            await trio.lowlevel.checkpoint()
    flushed = [event for event, _ in core.seen if isinstance(event, ev.LogFlushed)]
    assert flushed == [ev.LogFlushed(1, 0), ev.LogFlushed(3, 0)]
    assert seen_during == [3]


@autojump
async def test_answers_leave_before_the_flush_that_follows_them(nursery: trio.Nursery) -> None:
    """Followers then write their records while the leader writes too, not after it."""
    world = World()

    def answer(event: ev.Event) -> list[fx.Effect]:
        if isinstance(event, ev.RequestReceived):
            return [fx.FlushLog(1, 0), fx.SendReply(event.token, VoteResponse())]
        return []

    driver = make(FakeCore(answer), world)
    await run(driver, nursery)

    async def ask() -> None:
        await driver.request(request_of(FetchRequest(), 17))
        world.done.append("answered")

    # Tasks of one round run in any order, so once would prove little.
    for _ in range(20):
        async with trio.open_nursery() as askers:
            for _ in range(3):
                askers.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert world.done == ["answered"] * 3 + ["flush"]
        world.done.clear()


@pytest.mark.trio
@pytest.mark.parametrize(
    ("role", "size", "is_beside"),
    [
        ("leader", FLUSH_IN_WORKER_BYTES_MIN, True),
        ("leader", FLUSH_IN_WORKER_BYTES_MIN - 1, False),
        ("follower", FLUSH_IN_WORKER_BYTES_MIN, False),
    ],
)
async def test_a_leader_with_much_to_flush_continues_meanwhile(
    nursery: trio.Nursery, role: str, size: int, is_beside: bool
) -> None:
    """It has followers to answer; a follower waits only for its flush."""
    world, threads, flushed = World(), list[bool](), trio.Event()

    def answer(event: ev.Event) -> list[fx.Effect]:
        if isinstance(event, ev.LogFlushed):
            flushed.set()
        if not isinstance(event, ev.ShutdownRequested):
            return []
        changed = fx.RoleChanged("candidate", role, 1, 1, "a test says so")
        return [changed, fx.AppendToLog(0, 1, bytes(size)), fx.FlushLog(1, 0)]

    main = threading.get_ident()
    world.during_flush = lambda: threads.append(threading.get_ident() != main)
    driver = make(FakeCore(answer), world)
    await run(driver, nursery)
    for _ in range(2):
        driver.submit(ev.ShutdownRequested())
        await flushed.wait()
        flushed = trio.Event()
    # The second one as well: what has been flushed does not count again.
    assert threads == [is_beside] * 2


@autojump
async def test_the_files_of_the_log_are_locked_for_others_during_a_flush(
    nursery: trio.Nursery
) -> None:
    """A flush may run in a thread: until it ends, its files must not be truncated or closed."""
    world = World()
    taken: list[bool] = []

    def answer(event: ev.Event) -> list[fx.Effect]:
        return [fx.FlushLog(1, 0)] if isinstance(event, ev.ShutdownRequested) else []

    driver = make(FakeCore(answer), world)

    def during_flush() -> None:
        lock = driver._threads.lock
        if is_free := lock.acquire(blocking=False):
            lock.release()
        taken.append(is_free)

    world.during_flush = during_flush
    await run(driver, nursery)
    driver.submit(ev.ShutdownRequested())
    await trio.testing.wait_all_tasks_blocked()
    assert taken == [False]
    assert driver._threads.lock.acquire(blocking=False)
    driver._threads.lock.release()


@autojump
@pytest.mark.parametrize(
    ("effect", "done"),
    [
        # D1: the request after a failed write would be a vote that is forgotten.
        (fx.PersistQuorumState(fx.ElectionState(3)), []),
        (fx.FlushLog(1, 0), ["send 1", "flush"]),
    ],
)
async def test_a_disk_error_leaves_the_driver(effect: fx.Effect, done: list[str]) -> None:
    """D9: nothing is retried on a failed disk; the caller of the node ends it."""
    world = World()
    world.failure = StorageError("no space", file="x")
    driver = make(FakeCore(lambda _: [effect, send(1)]), world)
    driver.submit(ev.TimerExpired())
    with pytest.raises(BaseExceptionGroup) as caught:
        await driver.run()
    assert caught.group_contains(StorageError)
    assert world.done == done


@autojump
async def test_the_timer_fires_when_the_core_says(nursery: trio.Nursery) -> None:
    """Elections depend on it."""
    core = FakeCore()
    core.deadline_ms = 1500

    def answer(event: ev.Event) -> list[fx.Effect]:
        assert isinstance(event, ev.TimerExpired)
        core.deadline_ms = None
        return []

    core.answer = answer
    driver = make(core, World())
    nursery.start_soon(driver.run)
    await trio.sleep(1.499)
    assert core.seen == []
    await trio.sleep(0.1)
    assert core.seen == [(ev.TimerExpired(), 1500)]


@autojump
async def test_a_wall_clock_that_is_set_moves_timestamps_and_no_timer(
    nursery: trio.Nursery
) -> None:
    """An operator sets a machine's clock by an hour: elections must not be affected, records
    must."""
    core, world = FakeCore(), World()
    driver = make(core, world)
    await run(driver, nursery)
    await trio.sleep(1)
    world.wall_ms -= 3_600_000
    driver.submit(ev.TimerExpired())
    await trio.testing.wait_all_tasks_blocked()
    assert core.seen == [(ev.TimerExpired(), 1000)]
    assert core.wall == [WALL_MS - 3_600_000]


@autojump
async def test_a_request_gets_its_own_reply(nursery: trio.Nursery) -> None:
    """Replies come in any order; the token identifies their request."""
    waiting: list[ev.RequestReceived] = []

    def answer(event: ev.Event) -> list[fx.Effect]:
        if not isinstance(event, ev.RequestReceived):
            return []
        waiting.append(event)
        if len(waiting) < 2:
            return []
        return [fx.SendReply(e.token, VoteResponse(error_code=e.version)) for e in waiting[::-1]]

    driver = make(FakeCore(answer), World())
    await run(driver, nursery)
    replies: dict[int, int] = {}

    async def ask(version: int) -> None:
        reply = await driver.request(request_of(VoteRequest(), version))
        assert isinstance(reply, VoteResponse)
        replies[version] = reply.error_code

    async with trio.open_nursery() as askers:
        askers.start_soon(ask, 1)
        askers.start_soon(ask, 2)
    assert replies == {1: 1, 2: 2}


@autojump
async def test_a_reply_takes_its_records_from_the_log(nursery: trio.Nursery) -> None:
    """Batches go from disk to socket as they are; the core never holds them."""
    world = World()
    world.data = b"batch"

    def answer(event: ev.Event) -> list[fx.Effect]:
        assert isinstance(event, ev.RequestReceived)
        topic = FetchableTopicResponse(partitions=[PartitionData(records=b"")])
        reply = FetchResponse(responses=[topic])
        return [fx.SendReply(event.token, reply, fx.LogSlice(4, 3, 9))]

    driver = make(FakeCore(answer), world)
    await run(driver, nursery)
    reply = await driver.request(request_of(FetchRequest(), 17))
    assert isinstance(reply, FetchResponse)
    assert reply.responses[0].partitions[0].records == b"bat"
    assert world.done == ["read 4-9"]


@autojump
async def test_a_reply_to_a_connection_that_is_gone_is_dropped(nursery: trio.Nursery) -> None:
    """Peers disconnect while their Fetch is parked; the core need not know."""
    held: list[int] = []

    def answer(event: ev.Event) -> list[fx.Effect]:
        if isinstance(event, ev.RequestReceived):
            held.append(event.token)
            return []
        return [fx.SendReply(held[0], VoteResponse(), fx.LogSlice(0, 1, 1))]

    world = World()
    driver = make(FakeCore(answer), world)
    await run(driver, nursery)
    with trio.move_on_after(1):
        await driver.request(request_of(VoteRequest(), 2))
    driver.submit(ev.TimerExpired())
    await trio.testing.wait_all_tasks_blocked()
    assert world.done == []


@autojump
async def test_a_listener_gets_batches_and_reports_how_far(nursery: trio.Nursery) -> None:
    """State machines see every batch once, with its own offsets, and at their own pace."""
    world = World()
    world.data = batch(3, b"a", b"b") + batch(5, b"c")

    def answer(event: ev.Event) -> list[fx.Effect]:
        match event:
            case ev.ListenerRegistered():
                return [fx.DeliverCommitted(0, 3, 6)]
            case ev.ListenerConsumed():
                return [fx.LeaderChanged(0, 2, 1, 6)]
        return []

    core = FakeCore(answer)
    driver = make(core, world)
    listener = Listener()
    driver.add_state_machine(listener, 3)
    await run(driver, nursery)
    assert [b.base_offset for b in listener.batches] == [3, 5]
    assert ev.ListenerConsumed(0, 6) in core.events
    assert listener.leaders == [(2, 1, 6)]


@autojump
async def test_an_append_returns_its_last_offset_or_the_refusal(nursery: trio.Nursery) -> None:
    """The controller must know the offsets of its records, and when it no longer leads."""

    def answer(event: ev.Event) -> list[fx.Effect]:
        assert isinstance(event, ev.AppendRequested)
        if event.epoch == 1:
            return [fx.AppendAccepted(event.token, 10, 12, 1)]
        return [fx.AppendRefused(event.token, "NotLeader", "epoch 2")]

    driver = make(FakeCore(answer), World())
    await run(driver, nursery)
    assert await driver.append([b"a", b"b", b"c"], epoch=1) == 12
    with pytest.raises(ApiError) as caught:
        await driver.append([b"a"], epoch=2)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER


@autojump
async def test_values_that_no_record_can_have_are_the_callers_error(nursery: trio.Nursery) -> None:
    """A mistake in a program must not end the leader that it asks, and then the next one."""
    core = FakeCore()
    driver = make(core, World())
    await run(driver, nursery)
    before = len(core.events)
    wrong: list[list[Any]] = [[], [b""], [b"a", b""], ["a"], [None]]
    for values in wrong:
        with pytest.raises(UsageError, match="non-empty bytes"):
            await driver.append(values, epoch=1)
    assert core.events[before:] == []


@autojump
async def test_a_flood_of_events_leaves_room_for_others(nursery: trio.Nursery) -> None:
    """Connections must be served while a workload appends as fast as it can."""
    core = FakeCore()
    driver = make(core, World())
    for _ in range(1000):
        driver.submit(ev.TimerExpired())
    counts: list[int] = []

    async def watch() -> None:
        for _ in range(3):
            counts.append(len(core.seen))
            await trio.lowlevel.checkpoint()

    nursery.start_soon(watch)
    nursery.start_soon(driver.run)
    await trio.testing.wait_all_tasks_blocked()
    assert max(counts) < 1000
    assert len(core.seen) == 1000


@autojump
async def test_the_end_of_a_shutdown_is_reported(nursery: trio.Nursery) -> None:
    """The node closes its sockets only once the quorum can do without it."""
    driver = make(FakeCore(lambda _: [fx.ShutdownFinished(False)]), World())
    await run(driver, nursery)
    driver.submit(ev.ShutdownRequested())
    await driver.has_left.wait()
    assert not driver.was_graceful
