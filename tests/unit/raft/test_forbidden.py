"""A replica whose state machine cannot act on the log never leads, and helps the others."""

from __future__ import annotations

import pytest

from kraftwire.raft import effects, events
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetched, vote

_LONG_MS = 60_000
FORBIDDEN = events.LeadershipForbidden("records contradict each other")


def _elections(lone: Lone) -> int:
    roles = [one.new for one in lone.all_of(effects.RoleChanged)]
    return roles.count("prospective") + roles.count("candidate")


def test_the_only_voter_resigns_and_stays_without_a_leader() -> None:
    """R-RES-2: it must not be elected again and again."""
    lone = Lone(voters=(1,))
    assert lone.core.role == "leader"
    epoch, before = lone.core.epoch, _elections(lone)
    lone.handle(FORBIDDEN)
    assert lone.core.role == "resigned"
    lone.wait(_LONG_MS)
    assert lone.core.role == "unattached"
    assert lone.core.leader_id == -1
    assert _elections(lone) == before
    assert lone.core.epoch == epoch + 1
    lone.restart()
    assert lone.core.role == "leader"


def test_a_leader_hands_over_and_never_stands_again() -> None:
    """R-RES-2: another voter may know the log better."""
    lone = Lone(1)
    lone.lead()
    before = _elections(lone)
    lone.handle(FORBIDDEN)
    assert lone.core.role == "resigned"
    ends = [one for one in lone.requests if one.message.NAME == "EndQuorumEpochRequest"]
    assert {one.destination.key.id for one in ends} == {2, 3}
    lone.wait(_LONG_MS)
    assert _elections(lone) == before


@pytest.mark.parametrize("stage", ["follower", "prospective"])
def test_a_voter_follows_and_votes_but_does_not_stand(stage: str) -> None:
    """R-RES-2: what it has in its log and its vote still count."""
    lone = Lone(1, log=stored_log((1, 4)))
    lone.follow(2, 3)
    if stage == "prospective":
        lone.wait(20_000)
        assert lone.core.role == "prospective"
    before = _elections(lone)
    lone.handle(FORBIDDEN)
    lone.wait(_LONG_MS)
    assert _elections(lone) == before
    assert [one.message.NAME for one in lone.requests][-1] == "FetchRequest"
    answer = lone.request(vote(3, 4, (3, 9)))
    assert answer.topics[0].partitions[0].vote_granted


def test_a_follower_still_replicates() -> None:
    """R-RES-2: its copy may be needed."""
    lone = Lone(1, log=stored_log((1, 4)))
    lone.follow(2, 3)
    lone.handle(FORBIDDEN)
    lone.fetch_gets(fetched(2, 3, b"".join(stored_log((1, 4), (3, 1))[4:])))
    assert lone.core.end_offset == 5
