"""Timers that are configured as low as Kafka allows, and clocks."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import effects, events
from kraftwire.raft.config import (
    ELECTION_TIMEOUT_MIN_MS,
    FETCH_TIMEOUT_MIN_MS,
    RETRY_BACKOFF_MIN_MS,
    RaftTimers,
)
from kraftwire.records import RecordBatch
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone, append, fetches, leading

WALL = 1_700_000_000_000


def test_timers_below_the_least_useful_value_are_raised() -> None:
    """Kafka allows 0 for all three, and then spins. The others are accepted unchanged."""
    timers = RaftTimers(election_timeout_ms=0, fetch_timeout_ms=0, retry_backoff_ms=0)
    assert timers.election_timeout_ms == ELECTION_TIMEOUT_MIN_MS
    assert timers.fetch_timeout_ms == FETCH_TIMEOUT_MIN_MS
    assert timers.retry_backoff_ms == RETRY_BACKOFF_MIN_MS
    kept = RaftTimers(election_timeout_ms=500, append_linger_ms=0, election_backoff_max_ms=0)
    assert (kept.election_timeout_ms, kept.append_linger_ms) == (500, 0)
    assert kept.election_backoff_max_ms == 0


@pytest.mark.parametrize(
    "values",
    [
        {"election_timeout_ms": 0},
        {"retry_backoff_ms": 0, "retry_backoff_max_ms": 0},
        {"election_timeout_ms": 0, "retry_backoff_ms": 0, "append_linger_ms": 0},
        {"election_backoff_max_ms": 0, "election_timeout_ms": 0},
    ],
)
def test_no_timer_of_0_ends_or_busies_a_node(values: dict[str, int]) -> None:
    """L9: `election.timeout.ms=0` ended a node once, `retry.backoff.ms=0` cost 11 times the CPU."""
    cluster = Cluster([1, 2, 3], timers=RaftTimers(**values), seed=5)
    cluster.start(1, 2, 3)
    assert cluster.run_until(lambda: bool(cluster.leaders()), 5000)
    cluster.run(3000)
    [leader] = cluster.leaders()
    cluster.append(leader, b"x")
    cluster.run(1000)
    assert cluster.core(leader).high_watermark == cluster.core(leader).end_offset
    before = cluster.handled
    cluster.run(10_000)
    assert cluster.handled - before < 10 * 20 * 3, "spins where nothing happens"


@pytest.mark.parametrize("voters", [[1], [1, 2, 3]])
def test_a_fetch_timeout_of_0_neither_ends_nor_busies_a_node(voters: list[int]) -> None:
    """Followers then wait less than a fetch may take: elections never stop, but nor does the
    node."""
    cluster = Cluster(voters, timers=RaftTimers(fetch_timeout_ms=0))
    cluster.start(*voters)
    cluster.run(3000)
    assert sorted(cluster.nodes) == voters
    assert cluster.handled < 3 * 1000 * len(voters)


@pytest.mark.parametrize("name", ["election_timeout_ms", "retry_backoff_ms"])
def test_a_node_alone_of_three_does_not_spin(name: str) -> None:
    """It keeps asking those that are down, but not as fast as it can."""
    timers = RaftTimers(**{name: 0})
    cluster = Cluster([1, 2, 3], timers=timers)
    cluster.start(1)
    cluster.run(1000)
    assert cluster.core(1).epoch == 0
    assert cluster.handled < 1500


# ---- clocks --------------------------------------------------------------------------------------


def led_at(wall_ms: int, **fields: Any) -> Lone:
    """The only node leads, with its own wall clock."""
    lone = Lone(voters=(1, 2, 3), **fields)
    lone.wall_offset_ms = wall_ms - lone.now
    lone.lead()
    fetches(lone, 2)
    return lone


def stamps(lone: Lone) -> list[int]:
    """The times of the batches in the log."""
    return [RecordBatch(one).max_timestamp for one in lone.disk.batches]


def test_a_jump_of_the_wall_clock_moves_no_timer() -> None:
    """Neither check-quorum nor announcements nor the linger time."""
    found = []
    for jump in (0, 3_600_000, -3_600_000):
        lone = led_at(WALL)
        assert lone.wall_offset_ms is not None
        lone.wall_offset_ms += jump
        lone.handle(events.AppendRequested(1, lone.core.epoch, [b"x"]))
        seen = []
        for _ in range(4):
            assert lone.core.deadline_ms is not None
            seen.append(lone.core.deadline_ms - lone.now)
            lone.wait(lone.core.deadline_ms - lone.now)
        lone.wait(5000)
        roles = [one.new for one in lone.all_of(effects.RoleChanged)]
        assert "resigned" in roles
        found.append((seen, roles))
    assert found[0] == found[1] == found[2]


def test_timestamps_follow_the_wall_clock_but_never_back() -> None:
    """A batch is not older than the one before, whatever the clock does."""
    lone = led_at(WALL)
    for jump in (0, 3_600_000, -7_200_000, 10_000_000):
        assert lone.wall_offset_ms is not None
        lone.wall_offset_ms += jump
        append(lone, b"x")
    found = stamps(lone)
    assert found == sorted(found)
    assert found[2] >= WALL + 3_600_000
    assert found[3] == found[2], "stands still until the clock has caught up"
    assert found[4] > found[3]


def test_without_a_wall_clock_the_first_one_is_taken() -> None:
    """Tests and simulations have one clock."""
    lone = leading()
    append(lone, b"x")
    assert lone.now - 100 <= stamps(lone)[-1] <= lone.now


def test_a_clock_that_goes_back_is_not_believed() -> None:
    """R-FATAL-2: timers stand still until it has caught up, and nothing is undone."""
    lone = leading()
    deadline = lone.core.deadline_ms
    lone.now -= 10_000
    assert not [
        one
        for one in lone.handle(events.TimerExpired())
        if not isinstance(one, effects.SendRequest)
    ]
    assert lone.core.deadline_ms == deadline
