"""When followers of a leader that resigns stand for election: in the order that it proposes."""

from __future__ import annotations

import pytest

from kraftwire.raft.effects import ElectionState
from tests.support.raft.lone import Lone
from tests.support.raft.messages import end, fetched, vote


def _told(*successors: int) -> Lone:
    """Node 1 follows 2 in epoch 3, which resigns and names its successors."""
    lone = Lone(voters=(1, 2, 3, 4, 5), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=0))
    lone.request(end(2, 3, *successors))
    return lone


def _wait(lone: Lone) -> int:
    due = lone.core.deadline_ms
    assert due is not None
    return due - lone.now


def test_the_first_successor_stands_at_once() -> None:
    """R-END-4: waiting would not help any other voter."""
    assert _told(1, 3, 4).core.role == "prospective"


@pytest.mark.parametrize(
    ("successors", "wait"), [((3, 1, 4), 250), ((3, 4, 1), 500), ((3, 4, 5), 1000)]
)
def test_the_others_leave_it_some_time(successors: tuple[int, ...], wait: int) -> None:
    """R-END-4: twice as long for each place, the longest back-off for those not named at all."""
    lone = _told(*successors)
    assert (lone.core.role, _wait(lone)) == ("follower", wait)


def test_a_follower_of_a_leader_that_resigned_grants_pre_votes() -> None:
    """R-END-3, KAFKA-20895: it fetched a moment ago, yet its leader is gone."""
    lone = _told(3, 4, 1)
    answer = lone.request(vote(3, 3, pre_vote=True))
    assert answer.topics[0].partitions[0].vote_granted
