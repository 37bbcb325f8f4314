"""What must happen once the faults have ended: L1 to L10, the same in every world.

Units: virtual milliseconds; bounds allow for clock drift.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Protocol

from kraftwire.raft.config import KRAFT_VERSION_MAX, RaftTimers
from kraftwire.raft.core import RaftCore
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Key, is_member
from kraftwire.sim.invariants import Violation

# Sender and addressee.
Link = tuple[int, int]

DRIFT = 1.3

_STEP_MS = 20
_CATCH_UP_MS = 5_000
_IDLE_MS = 3_000
_CHANGE_MS = 6_000
_TIMERS_PER_SECOND_MAX = 20

# Each split vote costs an epoch; more than this many in a row are not bad luck.
_EPOCHS_PER_LOSS_MAX = 6


class Running(Protocol):
    """A running replica. Of the appends of clients, those in `appends` wait for the high watermark,
    those in `waiting` for the core's decision; `requests` have no answer yet."""

    @property
    def core(self) -> RaftCore:
        """Its core."""

    @property
    def appends(self) -> Collection[object]:
        """Accepted appends."""

    @property
    def waiting(self) -> Collection[object]:
        """Appends without a decision."""

    @property
    def requests(self) -> Collection[object]:
        """Requests without an answer."""


class HealedCluster(ABC):
    """A cluster whose faults have ended, as a world shows it.

    `nodes` are the ids of all nodes, `bootstrap` those whom a node asks that knows no leader.
    `has_pre_votes` is True if all nodes support pre-votes. `residue_ms` is how long anything from
    the time of the faults lasts, `election_ms` the time from the loss of a leader to the next one,
    `fetch_cost_ms` that of a fetch. `cover` counts a situation that was reached.
    """

    checkers: Checkers
    timers: RaftTimers
    seed: int
    nodes: Collection[int]
    bootstrap: Collection[int]
    has_pre_votes: bool
    residue_ms: int
    election_ms: int
    fetch_cost_ms: float
    cover: Callable[[str], None]

    @abstractmethod
    def running(self) -> Mapping[int, Running]:
        """Return the running replicas, by id."""

    @abstractmethod
    def pass_time(self, length_ms: int) -> None:
        """Let time pass."""

    @abstractmethod
    def cut(self, links: list[Link]) -> None:
        """Cut links, each in one direction."""

    @abstractmethod
    def restore(self) -> None:
        """Restore the links that were cut."""

    @abstractmethod
    def append(self, leader: int) -> None:
        """Let a client append at a leader."""

    @abstractmethod
    def applied(self, node: int) -> int | None:
        """Return the end of what a node's state machine has, None without one."""

    @abstractmethod
    def wakeups(self, node: int) -> int:
        """Return how often a timer of a node has been due."""

    @abstractmethod
    def events(self) -> int:
        """Return how much has happened for which the nodes themselves are the reason."""

    @abstractmethod
    def replace_disk(self, node: int) -> bool:
        """Give a node an empty disk, if the quorum can do without its old one."""

    @abstractmethod
    def begin_changes(self, *changes: tuple[str, Key]) -> None:
        """Let an operator add or remove voters, in this order, until it is done."""

    @abstractmethod
    def changes_left(self) -> int:
        """Return how many changes operators still want."""


class LostError(Exception):
    """The cluster needs an operator. The text is the situation."""


def check_liveness(cluster: HealedCluster) -> bool:
    """Check that a cluster recovers, makes progress, and copes with a further loss.

    Returns: False if the cluster needs an operator. Raises: Violation.

    Operators may have replaced the disks of a majority by mistake or removed all bootstrap servers,
    and a voter that missed its removal may be in a later epoch than the leader: then nothing more
    is checked.
    """
    checks = LivenessChecks(cluster)
    try:
        checks.recovers()
        trials = checks.trials()
        if trials:
            Random(f"trial {cluster.seed}").choice(trials)()
            checks.catches_up()
    except LostError as lost:
        cluster.cover(str(lost))
        return False
    return True


class LivenessChecks:
    """The checks of one cluster."""

    def __init__(self, cluster: HealedCluster) -> None:
        self._cluster = cluster
        self._random = Random(f"change {cluster.seed}")

    def recovers(self) -> None:
        """Check what must hold without any further fault."""
        cluster = self._cluster
        if cluster.changes_left():
            cluster.cover("changes finished in peace")
        self.finishes_changes()
        self.unites("after the faults")
        self.catches_up()
        self.idles()
        self._wait("L4", "a voter does not report its versions", cluster.election_ms,
                   lambda: not self._outdated())  # fmt: skip

    def trials(self) -> list[Callable[[], None]]:
        """Return the losses that the cluster must cope with."""
        leader = self._leader()
        model = self._models[leader]
        keys = [one.key for one in self._models.values()]
        is_whole = all(any(is_member((one,), key) for key in keys) for one in model.voters)
        trials: list[Callable[[], None]] = []
        if is_whole and model.is_voter() and self._cluster.has_pre_votes:
            trials += [self.loses_leader] if len(model.voters) > 1 else []
            trials += [self.loses_follower, self.loses_link] if len(model.voters) > 2 else []
        if model.version and len(self._cluster.nodes) > 1:
            trials.append(self.replaces)
        return trials

    # Without a fault

    def finishes_changes(self) -> None:
        """All voter changes that operators want are made. L4."""
        cluster = self._cluster
        step_ms = cluster.election_ms + _CHANGE_MS + int(self._backlog() * cluster.fetch_cost_ms)
        limit = cluster.residue_ms + (1 + cluster.changes_left()) * step_ms
        text = "some change of the voters is not made"
        self._wait("L4", text, limit, lambda: not cluster.changes_left())

    def unites(self, when: str) -> None:
        """All follow one leader. L1."""
        limit = self._cluster.residue_ms + self._cluster.election_ms
        self._wait("L1", f"no leader that all follow {when}", limit, self._is_united)

    def catches_up(self) -> None:
        """All have everything that is committed, state machines too, and what a client appends is
        committed. L2, L3."""
        cluster, leader, epoch = self._cluster, self._leader(), self._epoch()
        end = cluster.running()[leader].core.end_offset
        cluster.append(leader)
        limit = _CATCH_UP_MS + int(self._backlog() * cluster.fetch_cost_ms)
        self._wait("L2", "some replica does not catch up", limit, self._is_caught_up)
        for node, one in cluster.running().items():
            if one.appends or one.waiting:
                raise Violation("L3", f"appends at {node} are neither done nor refused")
        if self._epoch() == epoch and cluster.running()[leader].core.high_watermark <= end:
            raise Violation("L3", f"leader {leader} has not taken an append at {end}")

    def idles(self) -> None:
        """Without requests of clients nothing happens. L1, L9, L10."""
        cluster, epoch = self._cluster, self._epoch()
        before = {node: cluster.wakeups(node) for node in cluster.nodes}
        events = cluster.events()
        cluster.pass_time(_IDLE_MS)
        if self._epoch() != epoch or not self._leaders():
            raise Violation("L1", f"epoch {epoch} ended without a reason")
        most = _TIMERS_PER_SECOND_MAX * _IDLE_MS // 1000
        for node in cluster.nodes:
            count = cluster.wakeups(node) - before[node]
            if count > most * DRIFT:
                raise Violation("L9", f"{node} woke {count} times in {_IDLE_MS} idle ms")
        count = len(cluster.nodes)
        busy = (cluster.events() - events) / count
        if busy > 4 * most * count:
            raise Violation("L9", f"{busy:.0f} events for each idle node in {_IDLE_MS} ms")
        for node, one in cluster.running().items():
            if len(one.requests) > 4 * count:
                raise Violation("L10", f"{node} keeps {len(one.requests)} requests")

    def _outdated(self) -> list[int]:
        """Return the voters whose entries have other versions than they run."""
        leader = self._leader()
        if not self._models[leader].version:
            return []
        voters = self._cluster.running()[leader].core.voters
        return [
            voter.key.id
            for voter in voters
            if voter.kraft_version_max != KRAFT_VERSION_MAX
            and self._models[voter.key.id].key == (voter.key.id, voter.key.directory_id)
        ]

    # With one

    def loses_leader(self) -> None:
        """A leader that is cut off resigns, the others elect another, it returns. L1, L6, L7."""
        cluster = self._cluster
        # A fetch from before the faults ended may still arrive, and counts.
        cluster.pass_time(cluster.residue_ms)
        leader, epoch = self._leader(), self._epoch()
        count = len(self._models[leader].voters)
        cluster.cut(self._links(leader))
        limit = int(1.5 * cluster.timers.fetch_timeout_ms * DRIFT) + 200
        text = f"isolated leader {leader} keeps leading"
        self._wait("L7", text, limit, lambda: leader not in self._leaders())
        cluster.cover("isolated leader resigned")
        if count > 2:
            self._wait("L1", "no new leader", cluster.election_ms, lambda: bool(self._leaders()))
        cluster.restore()
        self.unites(f"after {leader} came back")
        if self._epoch() - epoch > _EPOCHS_PER_LOSS_MAX:
            raise Violation("L6", f"{self._epoch() - epoch} epochs for one lost leader")

    def loses_follower(self) -> None:
        """Neither the absence of a node nor its return ends an epoch. L8."""
        others = [node for node in self._cluster.nodes if node != self._leader()]
        node = self._random.choice(others)
        self._outlasts(f"{node} came back", self._links(node), 3)
        self._cluster.cover("follower came back")

    def loses_link(self) -> None:
        """A voter that only the leader cannot reach, or that cannot reach it, ends no epoch. L8."""
        leader = self._leader()
        followers = [one for one, _ in self._models[leader].voters if one != leader]
        other = self._random.choice(followers)
        links = [(leader, other), (other, leader)]
        chosen = self._random.choice((links, links[:1], links[1:]))
        self._outlasts(f"the link between {leader} and {other} was cut", chosen, 9)
        self._cluster.cover("link to the leader restored")

    def _outlasts(self, what: str, links: list[Link], timeouts: int) -> None:
        """Leader and epoch stay while links are cut for so many fetch timeouts, and later. L8."""
        cluster, leader, epoch = self._cluster, self._leader(), self._epoch()
        timeout_ms = cluster.timers.fetch_timeout_ms
        cluster.cut(links)
        cluster.pass_time(timeouts * timeout_ms)
        cluster.restore()
        cluster.pass_time(2 * timeout_ms)
        if self._epoch() != epoch or self._leaders() != [leader]:
            raise Violation("L8", f"{what}, and epoch {epoch} of {leader} ended")
        self.unites(f"after {what}")

    def replaces(self) -> None:
        """A node gets an empty disk and becomes a voter, whether it was one or not. L4, L5."""
        cluster = self._cluster
        node = self._random.choice(list(cluster.nodes))
        voters = self._models[self._leader()].voters
        changes = [("remove", key) for key in voters if key[0] == node]
        if cluster.replace_disk(node):
            cluster.cover("disk replaced in peace")
        elif len(voters) < 2:
            return
        cluster.begin_changes(*changes, ("add", self._models[node].key))
        self.finishes_changes()
        self.unites(f"after {node} was replaced")
        text = f"{node} does not become a voter"
        self._wait("L5", text, _CATCH_UP_MS, lambda: cluster.running()[node].core.is_voter)

    # The state of the cluster

    @property
    def _models(self) -> dict[int, ReplicaModel]:
        return self._cluster.checkers.models

    def _wait(self, invariant: str, problem: str, limit_ms: int, done: Callable[[], bool]) -> None:
        passed = 0
        while not done():
            if passed >= limit_ms:
                if reason := self._hopeless():
                    raise LostError(reason)
                raise Violation(invariant, f"{problem}, {limit_ms} ms")
            self._cluster.pass_time(_STEP_MS)
            passed += _STEP_MS

    def _hopeless(self) -> str:
        """Return why only an operator can help, empty if others can."""
        leaders = self._leaders()
        voters = self._models[leaders[-1]].voters if leaders else ()
        if not self._cluster.checkers.can_elect():
            return "nobody can be elected"
        # A leader announces itself to voters only.
        if leaders and not any(one in self._cluster.bootstrap for one, _ in voters):
            return "no bootstrap server is a voter"
        return "a removed voter cuts itself off" if self.is_cut_off() else ""

    def is_cut_off(self) -> bool:
        """Return whether a voter that missed its removal is in an epoch after the leader's.

        It does not know of its removal, or not that it is committed, and stood: with pre-votes that
        it was granted before, or because it or a peer does not support them (R-VOTE-10). No voter
        follows it there, and the leader refuses its fetches. Others that it asked may follow.
        """
        leaders = self._leaders()
        if not leaders:
            return False
        running, voters = self._cluster.running(), self._models[leaders[-1]].voters
        epoch = running[leaders[-1]].core.epoch
        late = [self._models[node] for node, one in running.items() if one.core.epoch > epoch]
        is_one_left = any(is_member(voters, one.key) for one in late)
        return any(one.may_stand() for one in late) and not is_one_left

    def _leaders(self) -> list[int]:
        """Return the nodes that lead. Order: by epoch."""
        cores = {node: one.core for node, one in self._cluster.running().items()}
        leading = [node for node, core in cores.items() if core.role == "leader"]
        return sorted(leading, key=lambda node: cores[node].epoch)

    def _leader(self) -> int:
        """Return the newest leader. Raises: Violation if there is none."""
        leaders = self._leaders()
        if not leaders:
            raise Violation("L1", "the leader has gone without a reason")
        return leaders[-1]

    def _epoch(self) -> int:
        return max(model.stored.epoch for model in self._models.values())

    def _backlog(self) -> int:
        """Return how many batches the slowest replica lacks."""
        models, history = self._models.values(), self._cluster.checkers.history
        longest = max(models, key=lambda model: model.end)
        least = min(model.end for model in models)
        committed = sum(entry.end > least for entry in history.committed)
        return committed + len(longest.above(max(least, history.frontier), longest.end))

    def _links(self, node: int) -> list[Link]:
        others = [other for other in self._cluster.nodes if other != node]
        return [link for other in others for link in ((node, other), (other, node))]

    def _is_united(self) -> bool:
        running, leaders = self._cluster.running(), self._leaders()
        if not leaders or len(running) < len(self._cluster.nodes):
            return False
        leader = leaders[-1]
        first = running[leader].core
        return first.is_voter and all(
            one.core.leader_id == leader
            and one.core.epoch == first.epoch
            and one.core.role == ("leader" if node == leader else "follower")
            for node, one in running.items()
        )

    def _is_caught_up(self) -> bool:
        running, leaders = self._cluster.running(), self._leaders()
        if not leaders or len(running) < len(self._cluster.nodes):
            return False
        end = running[leaders[-1]].core.end_offset
        return all(
            not one.appends
            and one.core.high_watermark == end
            and one.core.end_offset == end
            and self._cluster.applied(node) in (None, end)
            for node, one in running.items()
        )
