"""Waiting for commits and for the high watermark."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kraftwire.errors import ApiError
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from tests.support.nodes.fake_core import FakeCore, World, make, run
from tests.support.suite.autojump import autojump

pytestmark = autojump


async def test_a_wait_for_a_commit_ends_with_the_commit_or_the_leadership(
    nursery: trio.Nursery
) -> None:
    """An accepted append may still be truncated; only the high watermark decides."""
    steps: list[fx.Effect] = [
        fx.HighWatermarkAdvanced(5),
        fx.RoleChanged("leader", "resigned", 1, 1, "check-quorum"),
    ]
    driver = make(FakeCore(lambda _: [steps.pop(0)]), World())
    await run(driver, nursery)
    ends: dict[int, str] = {}

    async def wait(offset: int) -> None:
        try:
            await driver.waiters.committed(offset)
            ends[offset] = "committed"
        except ApiError as error:
            ends[offset] = f"error {error.code}"

    for offset in (6, 4, 5):
        nursery.start_soon(wait, offset)
    await trio.testing.wait_all_tasks_blocked()
    driver.submit(ev.TimerExpired())
    await trio.testing.wait_all_tasks_blocked()
    assert ends == {4: "committed"}
    driver.submit(ev.TimerExpired())
    await trio.testing.wait_all_tasks_blocked()
    assert ends == {4: "committed", 5: "error 41", 6: "error 41"}


async def test_waiting_for_the_high_watermark_ends_with_the_time(nursery: trio.Nursery) -> None:
    """A consumer's Fetch waits for records, but no longer than it asked."""
    driver = make(FakeCore(lambda _: [fx.HighWatermarkAdvanced(5)]), World())
    await run(driver, nursery)
    began = trio.current_time()
    assert await driver.waiters.above(0, 300) == -1
    assert trio.current_time() - began == pytest.approx(0.3)
    driver.submit(ev.TimerExpired())
    assert await driver.waiters.above(0, 300) == 5
