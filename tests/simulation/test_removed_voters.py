"""A voter that does not know of its removal, and whose peers do not support pre-votes."""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.sim.checks.liveness import LivenessChecks, check_liveness
from kraftwire.sim.clients import VoterChange
from kraftwire.sim.clock import MS
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.plan import DYNAMIC, Plan, Weather, draw
from kraftwire.sim.recovery import RecoveredCluster
from kraftwire.sim.run import run_plan

_VOTE = 52

# What the plans below need.
_LENGTH_MS = 40_000


def _all_voters_replaced(old_peers: Mapping[int, Mapping[int, int]]) -> Cluster:
    """Node 4 is the only voter left; node 1 was cut off before that, and is back."""
    plan = Plan(1, 3, 1, 5_000, Weather(), (), appends_per_second=1, skew_ms=(0,), quorum=DYNAMIC,
                old_peers=old_peers)  # fmt: skip
    cluster = Cluster(plan)
    cluster.run()
    links = [link for node in (2, 3, 4) for link in ((1, node), (node, 1))]
    cluster.network.block(links, 1)
    keys = {node: cluster.members.key(node) for node in (1, 2, 3, 4)}
    cluster.operators.begin(
        VoterChange("add", keys[4]), *(VoterChange("remove", keys[node]) for node in (1, 2, 3))
    )
    _pass(cluster, 60_000)
    assert cluster.history.voters == (keys[4],)
    cluster.network.block(links, -1)
    return cluster


def _pass(cluster: Cluster, time_ms: int) -> None:
    cluster.queue.run_until(cluster.queue.now + time_ms * MS)


def _is_cut_off(cluster: Cluster) -> bool:
    return LivenessChecks(RecoveredCluster(cluster)).is_cut_off()


def test_it_cuts_itself_off_where_a_peer_does_not_support_pre_votes() -> None:
    """Its epochs are later than the leader's, which refuses its fetches; no voter follows it."""
    cluster = _all_voters_replaced({3: {_VOTE: 1}})
    _pass(cluster, 20_000)
    assert _is_cut_off(cluster)
    cores = {node: cluster.machines[node].process.core for node in (1, 2, 3, 4)}
    epoch = cores[4].epoch
    assert cores[1].epoch > epoch
    assert all((cores[node].leader_id, cores[node].epoch) == (4, epoch) for node in (2, 3))
    cluster.operators.begin(VoterChange("add", cluster.members.key(1)))
    assert not check_liveness(RecoveredCluster(cluster))
    cluster.check_end(is_whole=False)
    assert cluster.coverage.counts["a removed voter cuts itself off"] == 1


def test_it_does_no_harm_if_all_support_pre_votes() -> None:
    """No voter gives it a pre-vote, so it has time to find the leader and learns of its removal."""
    cluster = _all_voters_replaced({})
    _pass(cluster, 20_000)
    assert not _is_cut_off(cluster)
    cluster.operators.begin(VoterChange("add", cluster.members.key(1)))
    assert check_liveness(RecoveredCluster(cluster))
    assert cluster.coverage.counts["change done: add"] >= 2


def test_it_cuts_itself_off_where_it_does_not_know_that_its_removal_is_committed() -> None:
    """Its log has the removal, so its own set is the others; it does not support pre-votes."""
    outcome = run_plan(draw(496, _LENGTH_MS))
    assert outcome.invariant == ""
    assert outcome.coverage["a removed voter cuts itself off"] == 1


def test_it_cuts_itself_off_from_a_leader_that_is_in_its_outdated_set() -> None:
    """What counts is that it is not in the leader's set; observers may have followed it."""
    outcome = run_plan(draw(4765, _LENGTH_MS))
    assert outcome.invariant == ""
    assert outcome.coverage["a removed voter cuts itself off"] == 1
