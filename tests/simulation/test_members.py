"""Members of a simulated cluster: how voters begin, whose disk may be lost, who is a stranger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraftwire.log.names import checkpoint_name, join, partition_directory
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT
from kraftwire.sim.checks.entries import Entry
from kraftwire.sim.checks.liveness import check_liveness
from kraftwire.sim.checks.voters import Voters, read_control
from kraftwire.sim.clients import VoterChange
from kraftwire.sim.clock import MS
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.members import Members
from kraftwire.sim.plan import DYNAMIC, STATIC, UPGRADED, Plan, Weather
from kraftwire.sim.recovery import RecoveredCluster
from kraftwire.sim.storage import DIRECTORY

PLAN = Plan(1, 3, 1, 10_000, Weather(), (), appends_per_second=1, skew_ms=(0,), quorum=DYNAMIC)


def _pass(cluster: Cluster, time_ms: int) -> None:
    cluster.queue.run_until(cluster.queue.now + time_ms * MS)


def _stated(voters: Voters) -> Entry:
    """The first batch of a log, which states a voter set."""
    return Entry(0, 1, 1, b"", True, voters, 1, 0)


def test_first_voters_are_formatted_with_each_others_directory_ids() -> None:
    """The shipped code formats them, since the shipped code reads them."""
    cluster = Cluster(PLAN)
    partition = partition_directory(DIRECTORY, METADATA_TOPIC)
    path = join(partition, checkpoint_name(BOOTSTRAP_SNAPSHOT))
    for node in (1, 2, 3):
        content = cluster.machines[node].files.read_bytes(path)
        length = int.from_bytes(content[8:12], "big") + 12
        voters, version, _ = read_control(content[:length])
        assert (voters, version) == (tuple(cluster.members.key(n) for n in (1, 2, 3)), 1)
    assert not cluster.machines[4].files.exists(path)


def test_a_disk_may_go_while_a_majority_of_disks_is_left() -> None:
    """Of three voters one may lose its disk; then the two others may not."""
    cluster = Cluster(PLAN)
    members, checkers = cluster.members, cluster.checkers
    assert members.may_wipe(1, checkers)
    cluster.machines[1].wipe()
    assert not members.may_wipe(2, checkers)
    assert members.may_wipe(1, checkers)
    assert members.may_wipe(4, checkers)


def test_the_disk_of_a_configured_voter_may_not_go() -> None:
    """Without a directory id the others cannot tell that its votes are forgotten."""
    cluster = Cluster(replace(PLAN, quorum=STATIC))
    assert not cluster.members.may_wipe(1, cluster.checkers)
    assert cluster.members.may_wipe(4, cluster.checkers)


def test_the_disk_of_a_voter_that_only_one_log_knows_may_not_go() -> None:
    """The log of one node has a set of two, which would lose its majority."""
    cluster = Cluster(PLAN)
    one, two = cluster.members.key(1), cluster.members.key(2)
    cluster.checkers.models[3].observe(_stated((one, two)))
    assert not cluster.members.may_wipe(1, cluster.checkers)
    assert cluster.members.may_wipe(3, cluster.checkers)


@pytest.mark.parametrize("durable", [0, 1])
def test_the_disk_of_a_voter_may_not_go_before_the_upgrade_is_flushed(durable: int) -> None:
    """A crash may take a log back to the configured voters, which have no directory ids."""
    cluster = Cluster(replace(PLAN, quorum=UPGRADED))
    keys = tuple(cluster.members.key(node) for node in (1, 2, 3))
    for model in cluster.checkers.models.values():
        model.observe(_stated(keys))
        model.high_watermark, model.durable = 1, 1
    cluster.checkers.models[3].durable = durable
    assert cluster.members.may_wipe(1, cluster.checkers) == bool(durable)


def test_a_new_disk_in_an_upgraded_quorum_has_no_configured_voters() -> None:
    """The only one of them would elect itself, while the log has other voters."""
    cluster = Cluster(replace(PLAN, voters=1, quorum=UPGRADED))
    assert len(cluster.members.config(1, b"x" * 16).voters) == 1
    cluster.machines[1].wipe()
    config = cluster.members.config(1, b"x" * 16)
    assert len(config.voters) == 0
    assert [at.host for at in config.bootstrap_servers] == ["node2"]
    assert cluster.checkers.models[1].voters == ()


def test_operators_get_what_they_want_and_are_told() -> None:
    """One voter is added and another removed, in a cluster without trouble."""
    cluster = Cluster(PLAN)
    cluster.run()
    one, four = cluster.members.key(1), cluster.members.key(4)
    cluster.operators.begin(VoterChange("add", four), VoterChange("remove", one))
    _pass(cluster, 20_000)
    assert cluster.operators.is_idle
    assert cluster.history.voters == tuple(cluster.members.key(n) for n in (2, 3, 4))
    assert cluster.coverage.counts["change done: add"] == 1
    assert cluster.coverage.counts["change done: remove"] == 1
    assert check_liveness(RecoveredCluster(cluster))


def test_a_replaced_voter_comes_back() -> None:
    """Its old replica is removed, its new one added; the new one catches up and votes."""
    cluster = Cluster(PLAN)
    cluster.run()
    old = cluster.members.key(2)
    cluster.machines[2].kill()
    cluster.machines[2].wipe()
    new = cluster.members.key(2)
    assert new != old
    changes = [VoterChange(*each) for each in (("add", new), ("remove", old), ("add", new))]
    cluster.operators.begin(*changes)
    _pass(cluster, 30_000)
    assert new in cluster.history.voters
    assert old not in cluster.history.voters
    assert cluster.coverage.counts["change settled: DUPLICATE_VOTER"] == 1


def test_the_set_that_a_stopped_replica_still_has_prevents_no_removal() -> None:
    """It has a lost disk where the committed one has a new one; the replica will catch up."""
    cluster = Cluster(PLAN)
    cluster.run()
    cluster.machines[4].down_until = -1
    cluster.machines[4].kill()
    for node in (2, 3):
        old = cluster.members.key(node)
        cluster.machines[node].down_until = -1
        cluster.machines[node].kill()
        cluster.machines[node].wipe()
        cluster.machines[node].start_later(0)
        changed = cluster.members.key(node)
        cluster.operators.begin(VoterChange("remove", old), VoterChange("add", changed))
        _pass(cluster, 30_000)
    assert cluster.history.voters == tuple(cluster.members.key(n) for n in (1, 2, 3))
    assert not cluster.coverage.counts["change dropped"]


def test_no_leader_can_be_elected_once_a_majority_of_disks_is_lost() -> None:
    """Then liveness cannot be expected; with one more disk it can."""
    cluster = Cluster(PLAN)
    assert cluster.checkers.can_elect()
    cluster.machines[1].wipe()
    assert cluster.checkers.can_elect()
    cluster.machines[2].wipe()
    assert not cluster.checkers.can_elect()


def test_a_log_without_a_possible_majority_elects_no_leader() -> None:
    """The only voter left of the newest set has an older log than the nodes outside it."""
    cluster = Cluster(replace(PLAN, observers=0))
    gone = (9, bytes(15) + b"\x09")
    stated = _stated((cluster.members.key(1), gone))
    for model in cluster.checkers.models.values():
        model.log.append(stated)
        model.observe(stated)
        model.high_watermark = 1
    assert not cluster.checkers.can_elect()


def test_a_node_of_another_cluster_is_refused() -> None:
    """It takes voters of this cluster for its own, asks them, and learns nothing."""
    cluster = Cluster(replace(PLAN, stranger=True))
    cluster.run()
    assert check_liveness(RecoveredCluster(cluster))
    (stranger,) = cluster.strangers
    assert cluster.coverage.counts["stranger refused"] > 0
    assert stranger.process is not None
    assert stranger.process.core.leader_id == -1
    assert stranger.checkers.history.leaders == {}
    assert stranger.id not in cluster.history.known


def test_a_stranger_is_formatted_for_its_own_cluster() -> None:
    """The same addresses, another id."""
    stranger = Members(PLAN, is_stranger=True)
    config = stranger.config(5, stranger.key(5)[1])
    assert config.cluster_id != Members(PLAN).config(1, Members(PLAN).key(1)[1]).cluster_id
    assert list(config.voters.voters) == [1, 2, 3, 5]


def test_a_slow_state_machine_still_gets_everything() -> None:
    """It gets nothing more before it has applied what it was given."""
    cluster = Cluster(replace(PLAN, with_listener=True, slow_ms=3_000))
    cluster.run()
    assert cluster.coverage.counts["state machine lagged"] > 0
    assert check_liveness(RecoveredCluster(cluster))
