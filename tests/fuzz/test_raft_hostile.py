"""No peer ends a Raft core, makes it spin, or makes it break an invariant, whatever it says."""

from __future__ import annotations

from random import Random

import pytest

from kraftwire.raft import events
from kraftwire.raft.effects import ElectionState
from tests.fuzz.hostile_peers import Hostile
from tests.fuzz.outcome import seed
from tests.support.raft_lone import Lone, begin, stored_log

_STEPS = 120
_RUNS = 60


def _leader(number: int) -> Lone:
    lone = Lone(log=stored_log((1, 4), (3, 3)), election=ElectionState(3), seed=number)
    lone.lead()
    return lone


def _follower(number: int) -> Lone:
    lone = Lone(log=stored_log((1, 4), (3, 3)), election=ElectionState(3), seed=number)
    lone.follow(2, 4)
    return lone


def _unattached(number: int) -> Lone:
    return Lone(log=stored_log((1, 4)), election=ElectionState(3), seed=number)


def _prospective(number: int) -> Lone:
    lone = _unattached(number)
    lone.now = lone.core.deadline_ms or lone.now
    lone.handle(events.TimerExpired())
    assert lone.core.role == "prospective"
    return lone


def _candidate(number: int) -> Lone:
    stored = ElectionState(3, voted=_unattached(number).config.key)
    return Lone(log=stored_log((1, 4)), election=stored, seed=number)


def _resigned(number: int) -> Lone:
    lone = _leader(number)
    lone.handle(events.ResignRequested(lone.core.epoch))
    return lone


def _observer(number: int) -> Lone:
    lone = Lone(4, log=stored_log((1, 4)), seed=number, can_be_voter=False)
    lone.request(begin(2, 3))
    return lone


def _leaving(number: int) -> Lone:
    lone = _leader(number)
    lone.handle(events.ShutdownRequested())
    return lone


def _behind_a_snapshot(number: int) -> Lone:
    log = stored_log((1, 12))
    return Lone(log=log, election=ElectionState(2), log_start=10, seed=number)


def _only_voter(number: int) -> Lone:
    return Lone(voters=(1,), log=stored_log((1, 4)), election=ElectionState(1), seed=number)


_ROLES = {
    "leader": _leader,
    "follower": _follower,
    "unattached": _unattached,
    "prospective": _prospective,
    "candidate": _candidate,
    "resigned": _resigned,
    "observer": _observer,
    "leaving": _leaving,
    "behind a snapshot": _behind_a_snapshot,
    "only voter": _only_voter,
}


@pytest.mark.parametrize("role", _ROLES)
def test_hostile_peers_cannot_harm_a_core(role: str) -> None:
    """R-FATAL-1 lists what ends a Java node; a peer gone wrong must not take others with it."""
    for run in range(_RUNS):
        number = seed() + run
        hostile = Hostile(_ROLES[role](number), Random(f"{role} {number}"))
        try:
            for _ in range(_STEPS):
                hostile.step()
        except Exception as error:
            error.add_note(f"role {role}, seed {number}; last: " + "\n".join(hostile.said[-4:]))
            raise
