"""Random delays: nodes that wait for the same thing must not act at the same moment."""

from __future__ import annotations

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import ElectionState, SendRequest
from tests.support.raft.lone import Lone
from tests.support.raft.messages import voted

_SEEDS = range(60)

# Of sixty nodes, at least this many act at different moments.
_DISTINCT = 20


def _waits(lone: Lone) -> int:
    due = lone.core.deadline_ms
    assert due is not None
    return due - lone.now


def test_nodes_without_leader_stand_at_different_times() -> None:
    """Between one and two election timeouts (R-VOTE-12)."""
    waits = [_waits(Lone(seed=seed)) for seed in _SEEDS]
    timeout = Lone().config.timers.election_timeout_ms
    assert timeout <= min(waits)
    assert max(waits) < 2 * timeout
    assert len(set(waits)) > _DISTINCT


def test_followers_of_a_dead_leader_stand_at_different_times() -> None:
    """All last heard from it at about the same moment."""
    waits = []
    for seed in _SEEDS:
        lone = Lone(seed=seed, election=ElectionState(1))
        lone.follow(2, 2)
        waits.append(_waits(lone))
    assert len(set(waits)) > _DISTINCT
    assert min(waits) >= Lone().config.timers.fetch_timeout_ms


def _lost(seed: int, *, knows_pre_votes: bool = True) -> int:
    """How long a candidate waits that has just lost its election."""
    lone = Lone(seed=seed)
    lone.wait(_waits(lone))
    if knows_pre_votes:
        for sent in _votes_asked(lone):
            lone.answer(sent, voted(0, is_granted=True))
    else:
        lone.fail(_votes_asked(lone)[0], ErrorCode.UNSUPPORTED_VERSION)
        lone.wait(lone.config.timers.retry_backoff_max_ms)
    for sent in _votes_asked(lone):
        lone.answer(sent, voted(1, is_granted=False))
    assert lone.core.role == "candidate"
    return _waits(lone)


def _votes_asked(lone: Lone) -> list[SendRequest]:
    return [one for one in lone.requests if one.message.NAME == "VoteRequest"][-2:]


def test_candidates_that_lost_try_again_at_different_times() -> None:
    """Two that took each other's votes would do so again and again."""
    waits = [_lost(seed) for seed in _SEEDS]
    assert len(set(waits)) > _DISTINCT
    assert max(waits) <= Lone().config.timers.election_backoff_max_ms


def test_candidates_without_pre_votes_wait_their_election_out() -> None:
    """L1: one with an older log than the others would begin epoch after epoch.

    Each of them delays the election that another node could win, which waits for one to two
    election timeouts; with a back-off of at most one timeout nobody else would ever stand.
    """
    timeout = Lone().config.timers.election_timeout_ms
    waits = [_lost(seed, knows_pre_votes=False) for seed in _SEEDS]
    assert min(waits) > timeout - Lone().config.timers.retry_backoff_max_ms - 1
    assert len(set(waits)) > _DISTINCT
