"""Who stands for election: only voters, and only with a log that no crash can shorten."""

from __future__ import annotations

from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import begin, fetched, vote

# Longer than any election time-out, even with the random part.
_LONG_MS = 20_000


def _with_unflushed_end() -> Lone:
    """A follower of 2 in epoch 3, whose disk has not flushed what it fetched last."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2), is_slow=True)
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, b"".join(stored_log((1, 4), (3, 1))[4:])))
    assert lone.core.flushed_offset < lone.core.end_offset
    return lone


def _roles(lone: Lone) -> set[str]:
    return {one.new for one in lone.all_of(effects.RoleChanged)}


def _flushed(lone: Lone) -> None:
    lone.flush(lone.all_of(effects.FlushLog)[-1])


def test_a_follower_whose_log_is_not_durable_does_not_stand() -> None:
    """After a crash it would have been elected for a log that it has partly lost."""
    lone = _with_unflushed_end()
    lone.wait(_LONG_MS)
    assert _roles(lone) <= {"follower"}
    assert [one for one in lone.requests if one.message.NAME == "VoteRequest"] == []
    _flushed(lone)
    assert lone.core.role == "prospective"


def test_a_replica_without_leader_whose_log_is_not_durable_does_not_stand() -> None:
    """The same after an epoch that began without a leader; and no needless timer is set."""
    lone = _with_unflushed_end()
    lone.request(vote(3, 4, (1, 2)))
    assert lone.core.role == "unattached"
    lone.wait(_LONG_MS)
    assert lone.core.role == "unattached"
    _flushed(lone)
    assert lone.core.role == "prospective"


def test_an_observer_does_not_stand() -> None:
    """S18: its vote does not count, and a new epoch would end the leader's."""
    lone = Lone(4, log=stored_log((1, 4)), election=ElectionState(2))
    lone.request(begin(2, 3))
    lone.wait(_LONG_MS)
    assert _roles(lone) <= {"follower", "unattached"}
    assert lone.core.epoch == 3
    lone.request(vote(3, 4, (1, 2)))
    lone.wait(_LONG_MS)
    assert _roles(lone) <= {"follower", "unattached"}
    assert lone.core.epoch == 4
