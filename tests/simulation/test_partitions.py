"""Links cut for a long time, some but not all: voters that can agree continue undisturbed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from kraftwire.sim.checks.liveness import LivenessChecks
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.plan import Fault, Plan, Weather
from kraftwire.sim.recovery import RecoveredCluster

# The cut begins when there has long been a leader, and outlasts the plan.
_CUT_MS = 5_000
_LENGTH_MS = 35_000
_LONG_MS = 10 * _LENGTH_MS

_SEEDS = range(2)

_Cuts = Callable[[int, list[int]], Sequence[tuple[str, int, tuple[int, ...]]]]


@dataclass(frozen=True)
class _Seen:
    """A cluster at the end of a plan, with its leader and epoch before the cut.

    `gained` is how many records were acknowledged since; `newest` is the newest leader.
    """

    cluster: Cluster
    leader: int
    epoch: int
    gained: int

    @property
    def epochs(self) -> int:
        """How many epochs the cut has cost."""
        return _epoch(self.cluster) - self.epoch

    @property
    def leaders(self) -> list[int]:
        """Who leads now. Order: by epoch."""
        return [machine.id for machine in self.cluster.leaders()]

    def heals(self) -> None:
        """Once all links are back the cluster is as before, copes with every loss, and nothing is
        lost."""
        checks = LivenessChecks(RecoveredCluster(self.cluster))
        checks.recovers()
        for trial in checks.trials():
            trial()
            checks.catches_up()
        self.cluster.check_end(is_whole=True)


def _epoch(cluster: Cluster) -> int:
    return max(model.stored.epoch for model in cluster.checkers.models.values())


def _cut(seed: int, voters: int, observers: int, cuts: _Cuts) -> _Seen:
    """Run a cluster whose links are cut as `cuts` says of its leader and the other voters."""
    weather = Weather()
    plan = Plan(seed, voters, observers, _CUT_MS, weather, (), 2.0, skew_ms=(0,))
    before = Cluster(plan)
    before.run()
    [leader] = [machine.id for machine in before.leaders()]
    others = [node for node in range(1, voters + 1) if node != leader]
    faults = tuple(
        Fault(_CUT_MS, kind, node, _LONG_MS, side) for kind, node, side in cuts(leader, others)
    )
    cluster = Cluster(replace(plan, length_ms=_LENGTH_MS, faults=faults))
    cluster.run()
    assert sum(cluster.nemesis.counts.values()) == len(faults)
    gained = cluster.acknowledged - before.acknowledged
    return _Seen(cluster, leader, _epoch(before), gained)


# ---- among voters --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_follower_that_alone_cannot_reach_the_leader_does_not_depose_it(seed: int) -> None:
    """L8, KIP-996: the others hear the leader and refuse their pre-votes, however long it lasts."""
    seen = _cut(
        seed, 3, 0, lambda leader, others: [
            ("oneway", leader, (others[0],)), ("oneway", others[0], (leader,)),
        ],
    )  # fmt: skip
    assert (seen.leaders, seen.epochs) == ([seen.leader], 0)
    assert seen.gained > 20
    seen.heals()


@pytest.mark.parametrize("seed", _SEEDS)
def test_two_followers_that_reach_only_a_third_one_depose_no_leader(seed: int) -> None:
    """L8: with the one in the middle they are a majority, and so is the leader with it."""
    seen = _cut(
        seed, 5, 0, lambda leader, others: [("bridge", others[1], (leader, others[0], others[1]))]
    )
    assert (seen.leaders, seen.epochs) == ([seen.leader], 0)
    assert seen.gained > 20
    seen.heals()


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_leader_that_one_of_four_can_reach_steps_down(seed: int) -> None:
    """L1, L7: the one in the middle must not support it any longer; then the next leader stays."""
    seen = _cut(seed, 5, 0, lambda leader, others: [("bridge", others[0], (leader,))])
    assert len(seen.leaders) == 1
    assert seen.leaders != [seen.leader]
    assert 1 <= seen.epochs <= 3
    assert seen.gained > 15
    seen.heals()


@pytest.mark.parametrize("kind", ["deaf", "mute"])
@pytest.mark.parametrize("seed", _SEEDS)
def test_a_leader_whose_links_work_one_way_steps_down(seed: int, kind: str) -> None:
    """L1, L7: neither hearing followers nor being heard by them is enough to lead."""
    seen = _cut(seed, 3, 0, lambda leader, _: [(kind, leader, ())])
    assert len(seen.leaders) == 1
    assert seen.leaders != [seen.leader]
    assert 1 <= seen.epochs <= 3
    assert seen.gained > 15
    seen.heals()


# ---- between voters and observers ----------------------------------------------------------------


@pytest.mark.parametrize("seed", _SEEDS)
def test_observers_do_not_keep_a_leader_that_no_voter_reaches(seed: int) -> None:
    """L7, R-CQ-2: all observers still fetch from it, and soon from the next leader."""
    seen = _cut(
        seed, 3, 1, lambda leader, _: [("bridge", 4, (leader,))]
    )
    assert len(seen.leaders) == 1
    assert seen.leaders != [seen.leader]
    assert 1 <= seen.epochs <= 3
    assert seen.gained > 15
    observer = seen.cluster.machines[4].process
    assert observer is not None
    assert [observer.core.leader_id] == seen.leaders
    seen.heals()


@pytest.mark.parametrize("seed", _SEEDS)
def test_voters_that_only_an_observer_reaches_elect_no_leader(seed: int) -> None:
    """S18: it passes no votes from one to another, and no epochs are used up meanwhile."""
    seen = _cut(
        seed, 3, 1, lambda leader, others: [
            ("bridge", 4, (leader,)), ("oneway", others[0], (others[1],)),
            ("oneway", others[1], (others[0],)),
        ],
    )  # fmt: skip
    assert (seen.leaders, seen.epochs <= 2) == ([], True)
    seen.heals()


@pytest.mark.parametrize("seed", _SEEDS)
def test_observers_that_are_cut_off_together_cost_no_epoch(seed: int) -> None:
    """L8: voters do not need observers, and those come back without an election."""
    seen = _cut(seed, 3, 4, lambda *_: [("split", 4, (4, 5, 6, 7))])
    assert (seen.leaders, seen.epochs) == ([seen.leader], 0)
    assert seen.gained > 20
    seen.heals()
