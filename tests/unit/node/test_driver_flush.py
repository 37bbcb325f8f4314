"""What a node sends before it stops to flush."""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.node.driver import FLUSH_IN_WORKER_BYTES_MIN
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from tests.support.autojump import autojump
from tests.support.fake_core import FakeCore, World, make, run
from tests.support.node_stub import request_of


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
