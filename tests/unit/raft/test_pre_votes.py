"""Which replicas grant pre-votes: one that hears its leader refuses to help depose it (KIP-996)."""

from __future__ import annotations

from typing import Any

from kraftwire.raft.effects import ElectionState
from tests.support.raft.lone import Lone, leading, stored_log
from tests.support.raft.messages import fetched, vote


def _would_vote(lone: Lone) -> bool:
    """Whether it would vote for 3, whose log is newer than any other."""
    answer: Any = lone.request(vote(3, lone.core.epoch, (lone.core.epoch, 99), pre_vote=True))
    return bool(answer.topics[0].partitions[0].vote_granted)


def test_a_leader_does_not_vote_against_itself() -> None:
    """L8: only if it were cut off or slow, and then the others decide without it."""
    lone = leading(is_dynamic=False)
    assert not _would_vote(lone)
    assert lone.core.role == "leader"


def test_a_follower_refuses_until_its_leader_has_been_silent_for_long() -> None:
    """L8: it refuses for nine tenths of the fetch timeout, not longer than others wait."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3))
    timeout = lone.config.timers.fetch_timeout_ms
    assert not _would_vote(lone)
    lone.wait(timeout // 10 * 9 - 1)
    assert not _would_vote(lone)
    lone.wait(1)
    assert (_would_vote(lone), lone.core.role) == (True, "follower")


def test_a_follower_that_has_never_reached_its_leader_does_not_refuse() -> None:
    """It was told of it, perhaps by a node that is gone by now."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    assert _would_vote(lone)


def test_a_log_that_lacks_something_gets_no_pre_vote() -> None:
    """S4: the vote would be refused, and the epoch wasted."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    for last, granted in (((1, 3), False), ((0, 9), False), ((1, 4), True), ((2, 0), True)):
        answer: Any = lone.request(vote(3, 2, last, pre_vote=True))
        assert answer.topics[0].partitions[0].vote_granted is granted, last
