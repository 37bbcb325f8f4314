"""Clusters whose faults have ended, played by a script: L1 to L10.

Unless an example says otherwise, all goes as it should.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kraftwire.raft.config import KRAFT_VERSION_MAX, RaftTimers
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey, Voter
from kraftwire.sim.checks.liveness import HealedCluster, Link, LivenessChecks, check_liveness
from kraftwire.sim.checks.voters import Key, Voters
from tests.simulation.checks.examples import ReportedCluster, breaks, directory, entry, holds

_THREE: Voters = tuple((node, directory(node)) for node in (1, 2, 3))


@dataclass
class _Replica:
    """A running replica, which is its own core."""

    role: str = "follower"
    epoch: int = 1
    leader_id: int = 1
    end_offset: int = 1
    high_watermark: int = 1
    is_voter: bool = True
    applied: int = 1
    requests: list[int] = field(default_factory=list)
    appends: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    voters: list[Voter] = field(default_factory=list)

    @property
    def core(self) -> Any:
        """Itself."""
        return self


class ScriptedCluster(HealedCluster):
    """Voters 1, 2 and 3 under leader 1, and observer 4. `after` lets something happen later; the
    functions `on_...` are what follows from what the checks do."""

    seed = 0
    nodes = (1, 2, 3, 4)
    bootstrap = nodes
    has_pre_votes = True
    residue_ms = 100
    election_ms = 10_000
    fetch_cost_ms = 10

    def __init__(self) -> None:
        reported = ReportedCluster(_THREE, 4, version=1)
        reported.elects(1, 1, 2)
        first = entry(0, 1, voters=_THREE)
        reported.writes(1, first, epoch=1)
        for node in (2, 3, 4):
            reported.copies(node, first, epoch=1)
        reported.commits(1, 1, 1)
        self.reported = reported
        self.checkers = reported.checkers
        self.timers = RaftTimers()
        self.replicas = {node: _Replica(is_voter=node < 4) for node in self.nodes}
        self.covered: Counter[str] = Counter()
        self.cover = self._cover
        self.timer_counts: Counter[int] = Counter()
        self.count = 0
        self.left: list[tuple[str, Key]] = []
        self.on_append: Callable[[], None] = self.commit
        self.on_cut: Callable[[], None] = self._stay
        self.on_restore: Callable[[], None] = self._stay
        self.on_change: Callable[[], None] = self.make_changes
        self._now = 0
        self._later: list[tuple[int, Callable[[], None]]] = []
        self.lead(1, 1)

    def _stay(self) -> None:
        """Nothing follows."""

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Let something happen later."""
        self._later.append((self._now + delay_ms, action))

    def lead(self, leader: int, epoch: int, *missing: int) -> None:
        """All but those missing follow a leader."""
        for node in self.nodes:
            if node not in missing:
                one = self.replicas[node]
                one.role = "leader" if node == leader else "follower"
                one.epoch, one.leader_id = epoch, leader
                self.checkers.models[node].stored = ElectionState(epoch, leader, None)

    def commit(self, *missing: int) -> None:
        """One more record is committed and applied, except on those missing."""
        for node, one in self.replicas.items():
            if node not in missing:
                one.end_offset += 1
                one.high_watermark = one.applied = one.end_offset

    def resign(self, node: int = 1) -> None:
        """A node leads no more."""
        self.replicas[node].role = "unattached"

    def make_changes(self) -> None:
        """Make all changes that are wanted."""
        for kind, key in self.left:
            self.replicas[key[0]].is_voter = kind == "add"
        self.left = []

    def lose_leader(self, resigns_ms: int = 3_500, epoch: int = 2) -> None:
        """Once it is cut off, leader 1 resigns, 2 is elected, and leads all in the end."""
        self.on_cut = lambda: self.after(resigns_ms, self.resign)
        self.after(resigns_ms, lambda: self.lead(2, 2, 1))
        self.on_restore = lambda: self.lead(2, epoch)

    # What the checks see and do

    def running(self) -> dict[int, _Replica]:
        """The running replicas."""
        return self.replicas

    def pass_time(self, length_ms: int) -> None:
        """Let time pass."""
        self._now += length_ms
        due = [action for at, action in self._later if at <= self._now]
        self._later = [one for one in self._later if one[0] > self._now]
        for action in due:
            action()

    def _cover(self, situation: str) -> None:
        self.covered[situation] += 1

    def cut(self, links: list[Link]) -> None:
        """Cut links."""
        assert links
        self.on_cut()

    def restore(self) -> None:
        """Restore them."""
        self.on_restore()

    def append(self, leader: int) -> None:
        """Append at the leader."""
        assert self.replicas[leader].role == "leader"
        self.on_append()

    def applied(self, node: int) -> int | None:
        """The end of what voters have applied; the observer has no state machine."""
        return self.replicas[node].applied if node < 4 else None

    def wakeups(self, node: int) -> int:
        """How often a timer was due."""
        return self.timer_counts[node]

    def events(self) -> int:
        """How much has happened."""
        return self.count

    def replace_disk(self, node: int) -> bool:
        """Give a node an empty disk."""
        self.replicas[node].is_voter = False
        return True

    def begin_changes(self, *changes: tuple[str, Key]) -> None:
        """Let an operator change the voters."""
        self.left += changes
        self.after(100, self.on_change)

    def changes_left(self) -> int:
        """How many changes are left."""
        return len(self.left)


def _recovers(cluster: ScriptedCluster) -> None:
    LivenessChecks(cluster).recovers()


def _with_versions(cluster: ScriptedCluster, highest: int, generation: int = 0) -> None:
    """The entry of 2 in the voter set has this kraft.version, and that of another disk maybe."""
    key = ReplicaKey(2, directory(2, generation))
    cluster.replicas[1].voters = [Voter(key, (), 0, highest)]


# ---- L1, L2, L3 ----------------------------------------------------------------------------------


@breaks("L1")
def nobody_leads() -> None:
    """Not even after an election."""
    cluster = ScriptedCluster()
    cluster.resign()
    _recovers(cluster)


@breaks("L1")
def follower_stays_in_an_older_epoch() -> None:
    """It follows the same node."""
    cluster = ScriptedCluster()
    cluster.lead(1, 2, 3)
    _recovers(cluster)


@breaks("L1")
def follower_follows_nobody() -> None:
    """It only stands in the epoch."""
    cluster = ScriptedCluster()
    cluster.resign(3)
    _recovers(cluster)


@breaks("L1")
def follower_follows_another_node() -> None:
    """In the same epoch."""
    cluster = ScriptedCluster()
    cluster.replicas[3].leader_id = 2
    _recovers(cluster)


@breaks("L1")
def leader_is_no_voter() -> None:
    """It should have resigned."""
    cluster = ScriptedCluster()
    cluster.replicas[1].is_voter = False
    _recovers(cluster)


@breaks("L1")
def node_does_not_run() -> None:
    """All others follow."""
    cluster = ScriptedCluster()
    del cluster.replicas[3]
    _recovers(cluster)


@breaks("L1")
def epoch_ends_while_idle() -> None:
    """There is a next leader."""
    cluster = ScriptedCluster()
    cluster.after(1_500, lambda: cluster.lead(2, 2))
    _recovers(cluster)


@breaks("L1")
def leader_resigns_while_idle() -> None:
    """The epoch is the same."""
    cluster = ScriptedCluster()
    cluster.after(1_500, cluster.resign)
    LivenessChecks(cluster).idles()


@breaks("L1")
def leader_goes_before_it_is_used() -> None:
    """There was one."""
    cluster = ScriptedCluster()
    cluster.resign()
    LivenessChecks(cluster).catches_up()


@breaks("L1")
def lost_leader_has_no_successor() -> None:
    """Two of three voters are left."""
    cluster = ScriptedCluster()
    cluster.on_cut = lambda: cluster.after(1_000, cluster.resign)
    cluster.on_restore = lambda: cluster.lead(2, 2)
    LivenessChecks(cluster).loses_leader()


def _appends(cluster: ScriptedCluster, **late: int) -> None:
    """A client appends, and 3 lags behind in a way."""

    def append() -> None:
        cluster.commit()
        for name, offset in late.items():
            setattr(cluster.replicas[3], name, offset)

    cluster.on_append = append
    LivenessChecks(cluster).catches_up()


@breaks("L2")
def follower_does_not_get_what_is_appended() -> None:
    """The others have it."""
    cluster = ScriptedCluster()
    cluster.on_append = lambda: cluster.commit(3)
    _recovers(cluster)


@breaks("L2")
def follower_knows_of_what_it_does_not_have() -> None:
    """It is committed."""
    _appends(ScriptedCluster(), end_offset=1)


@breaks("L2")
def follower_does_not_know_what_is_committed() -> None:
    """It has it."""
    _appends(ScriptedCluster(), high_watermark=1)


@breaks("L2")
def state_machine_lags() -> None:
    """The log has everything."""
    _appends(ScriptedCluster(), applied=1)


@breaks("L3")
def append_is_not_decided() -> None:
    """All that was accepted is committed."""
    cluster = ScriptedCluster()
    cluster.replicas[1].waiting = [7]
    _recovers(cluster)


@breaks("L3")
def append_is_ignored() -> None:
    """Nothing is appended."""
    cluster = ScriptedCluster()
    cluster.on_append = lambda: None
    _recovers(cluster)


@breaks("L2")
def append_waits() -> None:
    """The record is committed, and the client does not hear of it."""
    cluster = ScriptedCluster()
    cluster.replicas[1].appends = [7]
    _recovers(cluster)


# ---- L4, L5 --------------------------------------------------------------------------------------


@breaks("L4")
def change_is_not_made() -> None:
    """An operator still waits for it."""
    cluster = ScriptedCluster()
    cluster.left = [("add", (4, directory(4)))]
    _recovers(cluster)


@breaks("L4")
def versions_are_not_reported() -> None:
    """2 runs an earlier release than when it became a voter."""
    cluster = ScriptedCluster()
    _with_versions(cluster, KRAFT_VERSION_MAX + 1)
    _recovers(cluster)


@breaks("L5")
def replaced_node_does_not_become_a_voter() -> None:
    """Although the operator has been told so."""
    cluster = ScriptedCluster()
    cluster.on_change = lambda: cluster.left.clear()
    LivenessChecks(cluster).replaces()


# ---- L6, L7, L8 ----------------------------------------------------------------------------------


@breaks("L6")
def lost_leader_costs_seven_epochs() -> None:
    """One more than bad luck explains."""
    cluster = ScriptedCluster()
    cluster.lose_leader(epoch=8)
    LivenessChecks(cluster).loses_leader()


@breaks("L7")
def isolated_leader_leads_on() -> None:
    """The others have elected another."""
    cluster = ScriptedCluster()
    cluster.on_cut = lambda: cluster.lead(2, 2, 1)
    LivenessChecks(cluster).loses_leader()


@breaks("L7")
def isolated_leader_resigns_late() -> None:
    """After more than 1.5 fetch timeouts and 30 % of drift."""
    cluster = ScriptedCluster()
    cluster.lose_leader(resigns_ms=4_200)
    LivenessChecks(cluster).loses_leader()


@breaks("L8")
def returning_follower_ends_the_epoch() -> None:
    """It had stood alone."""
    cluster = ScriptedCluster()
    cluster.on_restore = lambda: cluster.after(100, lambda: cluster.lead(2, 2))
    LivenessChecks(cluster).loses_follower()


@breaks("L8")
def leader_resigns_without_one_follower() -> None:
    """It leads again soon, in a later epoch."""
    cluster = ScriptedCluster()
    cluster.on_cut = lambda: cluster.lead(1, 2)
    LivenessChecks(cluster).loses_follower()


@breaks("L8")
def leader_goes_where_a_link_is_cut() -> None:
    """Nobody has stood yet."""
    cluster = ScriptedCluster()
    cluster.on_cut = lambda: cluster.after(17_000, cluster.resign)
    LivenessChecks(cluster).loses_link()


# ---- L9, L10 -------------------------------------------------------------------------------------


def _idles(wakeups: int = 0, events: int = 0) -> None:
    """While idle, node 3 wakes so many times, and so much happens."""
    cluster = ScriptedCluster()

    def be_busy() -> None:
        cluster.timer_counts[3] += wakeups
        cluster.count += events

    cluster.timer_counts[3] = cluster.count = 10_000
    cluster.after(1_000, be_busy)
    LivenessChecks(cluster).idles()


@breaks("L9")
def node_wakes_too_often() -> None:
    """More than 20 times a second, and 30 % of drift."""
    _idles(wakeups=79)


@breaks("L9")
def nodes_are_busy() -> None:
    """With one another, without timers."""
    _idles(events=4 * 961)


@breaks("L10")
def requests_are_kept() -> None:
    """Four of each node, and one more."""
    cluster = ScriptedCluster()
    cluster.replicas[3].requests = [0] * 17
    _recovers(cluster)


# ---- near misses ---------------------------------------------------------------------------------


@holds
def all_is_well() -> None:
    """With each of the losses."""
    for trial in ("loses_leader", "loses_follower", "loses_link", "replaces"):
        cluster = ScriptedCluster()
        _recovers(cluster)
        found = {each.__name__: each for each in LivenessChecks(cluster).trials()}
        assert len(found) == 4
        if trial == "loses_leader":
            cluster.lose_leader()
        found[trial]()
        LivenessChecks(cluster).catches_up()
    assert check_liveness(_calm())


def _calm() -> ScriptedCluster:
    """No loss can be tried."""
    cluster = ScriptedCluster()
    cluster.has_pre_votes = False
    return cluster


@holds
def all_unite_in_time() -> None:
    """In the last moment, after much has happened."""
    cluster = ScriptedCluster()
    cluster.resign()
    cluster.after(10_080, lambda: cluster.lead(3, 9))
    _recovers(cluster)


@holds
def change_is_made_in_time() -> None:
    """It takes effect while others elect."""
    cluster = ScriptedCluster()
    cluster.left = [("add", (4, directory(4)))]
    cluster.after(30_000, cluster.make_changes)
    _recovers(cluster)
    assert cluster.covered["changes finished in peace"] == 1


@holds
def follower_catches_up_in_time() -> None:
    """Within five seconds."""
    cluster = ScriptedCluster()
    cluster.on_append = lambda: cluster.commit(3)
    cluster.after(4_900, lambda: _follow(cluster))
    LivenessChecks(cluster).catches_up()


def _follow(cluster: ScriptedCluster) -> None:
    late, leader = cluster.replicas[3], cluster.replicas[1]
    late.end_offset = late.high_watermark = late.applied = leader.end_offset


@holds
def append_is_lost_with_its_leader() -> None:
    """It was answered so."""
    cluster = ScriptedCluster()
    cluster.on_append = lambda: cluster.lead(2, 2)
    LivenessChecks(cluster).catches_up()


@holds
def leader_resigns_just_in_time() -> None:
    """And six epochs are lost."""
    cluster = ScriptedCluster()
    cluster.lose_leader(resigns_ms=4_000, epoch=7)
    LivenessChecks(cluster).loses_leader()


@holds
def nodes_are_as_busy_as_they_may() -> None:
    """At the bounds."""
    _idles(wakeups=78, events=4 * 960)
    cluster = ScriptedCluster()
    cluster.replicas[3].requests = [0] * 16
    _recovers(cluster)


@holds
def versions_of_a_lost_disk_stay() -> None:
    """2 is another replica than the one in the set."""
    cluster = ScriptedCluster()
    _with_versions(cluster, KRAFT_VERSION_MAX + 1, generation=1)
    _recovers(cluster)


@holds
def versions_are_reported_late() -> None:
    """One voter after the other reports them."""
    cluster = ScriptedCluster()
    _with_versions(cluster, KRAFT_VERSION_MAX + 1)
    cluster.after(12_000, lambda: _with_versions(cluster, KRAFT_VERSION_MAX))
    _recovers(cluster)


@holds
def losses_that_cannot_be_coped_with_are_not_tried() -> None:
    """Without pre-votes, with a lost disk, with too few voters."""
    names = {each.__name__ for each in LivenessChecks(_calm()).trials()}
    assert names == {"replaces"}
    cluster = ScriptedCluster()
    cluster.reported.gets_a_disk(3, 1)
    assert {each.__name__ for each in LivenessChecks(cluster).trials()} == {"replaces"}
    cluster = ScriptedCluster()
    cluster.checkers.models[1].sets = [(0, _THREE[:2])]
    names = {each.__name__ for each in LivenessChecks(cluster).trials()}
    assert names == {"loses_leader", "replaces"}


def _is_given_up(cluster: ScriptedCluster, situation: str) -> None:
    assert not check_liveness(cluster)
    assert cluster.covered[situation] == 1


@holds
def nobody_can_be_elected() -> None:
    """Two of three voters have lost their disks."""
    cluster = ScriptedCluster()
    cluster.resign()
    for node in (2, 3):
        cluster.reported.gets_a_disk(node, 1)
    _is_given_up(cluster, "nobody can be elected")


@holds
def leader_cannot_be_found() -> None:
    """Operators have removed all voters that 4 asks."""
    cluster = ScriptedCluster()
    cluster.bootstrap = (4,)
    cluster.resign(4)
    _is_given_up(cluster, "no bootstrap server is a voter")


@holds
def removed_voter_stays_apart() -> None:
    """3 does not know of its removal, and is in a later epoch."""
    cluster = ScriptedCluster()
    cluster.lead(3, 2, 1, 2, 4)
    cluster.resign(3)
    for node in (1, 2, 4):
        cluster.checkers.models[node].sets = [(0, _THREE), (1, _THREE[:2])]
    _is_given_up(cluster, "a removed voter cuts itself off")


@breaks("L1")
def voter_stays_apart() -> None:
    """3 is in a later epoch, and a voter."""
    cluster = ScriptedCluster()
    cluster.lead(3, 2, 1, 2, 4)
    cluster.resign(3)
    _recovers(cluster)


@breaks("L1")
def observer_stays_apart() -> None:
    """4 is in a later epoch, where it could not stand."""
    cluster = ScriptedCluster()
    cluster.lead(4, 2, 1, 2, 3)
    cluster.resign(4)
    _recovers(cluster)
