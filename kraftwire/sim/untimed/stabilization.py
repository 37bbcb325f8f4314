"""What must hold once the faults have ended, and under one simple, lasting fault: L1 to L9.

During stabilization virtual time passes: messages take a few milliseconds, disks no time, all
clocks are equal. The cluster settles; then, depending on the seed, a leader is isolated, a follower
is absent, a link is cut, or a voter is added and removed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from kraftwire.raft.config import KRAFT_VERSION_MAX, RaftTimers
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import is_member
from kraftwire.sim.invariants import Violation
from kraftwire.sim.untimed.node import Node
from kraftwire.sim.untimed.world import World

_STEPS_MAX = 100_000

# The share of messages that arrive within a millisecond.
_ARRIVES = 0.4


class Stabilization:
    """Lets time pass in a world without faults. Units: milliseconds."""

    def __init__(self, world: World) -> None:
        """End all faults: nodes that are shutting down are stopped, then all stopped nodes start.
        """
        self.world = world
        self.random = Random(f"stabilization {world.plan.seed}")
        world.apply("heal")
        for node in list(world.nodes.values()):
            world.apply("cancel_cut", node.id)
            if node.is_leaving:
                world.apply("crash", node.id, 0)
        for at in world.plan.nodes:
            world.apply("start", at)
        self._now = max(node.now for node in world.nodes.values())

    def run(self, length_ms: int, *, until_settled: bool = False) -> bool:
        """Let this much time pass; returns whether the cluster has settled."""
        end = self._now + length_ms
        for _ in range(_STEPS_MAX):
            self._deliver_all()
            if until_settled and self.is_settled():
                return True
            at = self._next_time()
            if at is None or at > end:
                self._now = end
                return self.is_settled()
            self._now = max(self._now, at)
            self._timers()
        raise Violation("L9", f"no rest: {self.state()}")

    def _next_time(self) -> int | None:
        due = [node.due for node in self.world.nodes.values()]
        times = [at for at in due if at is not None]
        if any(self.world.passes(call) for call in self.world.calls.pending):
            times.append(self._now + 1)
        return min(times, default=None)

    def _timers(self) -> None:
        for node in list(self.world.nodes.values()):
            due = node.due
            if due is not None and due <= self._now:
                self.world.apply("timer", node.id)

    def _deliver_all(self) -> None:
        """Deliver all messages in flight and finish all work; new messages are delivered later."""
        world = self.world
        for at in world.plan.nodes:
            world.apply("start", at)
        for call in list(world.calls.lost):
            # A call that was already given up must not be mistaken for the newest of its kind.
            if call.is_awaited:
                world.apply("fail", call.name)
        for call in list(world.calls.pending):
            if not world.passes(call):
                # It never arrives: the node that waits for the answer gives up in time.
                if self._now >= call.deadline_ms:
                    world.apply("expire", call.name)
            elif self.random.random() < _ARRIVES:
                self._wake(call.link[1])
                world.apply("deliver", call.name)
        for node in list(world.nodes.values()):
            while node.work and node.id in world.nodes:
                self._wake(node.id)
                world.apply("work", node.id, node.work[0].kind)

    def _wake(self, at: int) -> None:
        """Set a node's clock to the present time."""
        node = self.world.nodes.get(at)
        if node is not None and node.now < self._now:
            self.world.apply("clock", at, self._now)

    def leader(self) -> Node | None:
        """The leader of the newest epoch."""
        leading = [node for node in self.world.nodes.values() if node.role == "leader"]
        return max(leading, key=lambda node: node.epoch, default=None)

    def epoch(self) -> int:
        """The newest epoch."""
        return max(node.epoch for node in self.world.nodes.values())

    def model(self, node: Node) -> ReplicaModel:
        """Return what the checks know of a node."""
        return self.world.checkers.models[node.id]

    def voters(self, leader: Node) -> list[Node]:
        """The nodes in the voter set of a leader."""
        members = self.model(leader).voters
        nodes = self.world.nodes.values()
        return [n for n in nodes if is_member(members, self.model(n).key)]

    def is_settled(self) -> bool:
        """Whether all nodes follow one leader and know that all records are committed."""
        leader = self.leader()
        return leader is not None and self._follow(leader, list(self.world.nodes.values()))

    def cuts_itself_off(self) -> bool:
        """Return whether only a voter that missed its removal, and stood after it, is not settled.

        It had been granted pre-votes, so its epoch is after the leader's, and the leader does not
        adopt the epoch of a replica that is not a voter; the next election brings it back. It may
        have the record of its removal without knowing that it is committed. Other nodes that it
        asked for votes may be in its epoch too, unless they are voters.
        """
        leader = self.leader()
        if leader is None:
            return False
        late = [node for node in self.world.nodes.values() if node.epoch > leader.epoch]
        others = [node for node in self.world.nodes.values() if node not in late]
        missed = (self.model(node).may_stand() for node in late)
        voters = self.voters(leader)
        return (
            any(missed)
            and not any(node in voters for node in late)
            and self._follow(leader, others)
        )

    def _follow(self, leader: Node, nodes: list[Node]) -> bool:
        end, voters = leader.core.end_offset, self.voters(leader)
        for node in nodes:
            core = node.core
            if core.leader_id != leader.id or core.epoch != leader.epoch:
                return False
            if core.high_watermark != end or (node in voters and core.end_offset != end):
                return False
        return True

    def can_be_found(self) -> bool:
        """Whether a node that knows no leader can learn of the present one.

        Its bootstrap servers are the first voters. Once all of these are removed, the leader is not
        announced to them either: configurations have to be kept up to date.
        """
        leader = self.leader()
        initial = self.world.plan.voters
        return leader is None or any(node.id <= initial for node in self.voters(leader))

    def state(self) -> str:
        """Describe the state of all nodes in one line."""
        return "; ".join(
            f"{node.id} {node.role} of {node.epoch} under {node.core.leader_id}, log "
            f"{node.core.end_offset}, high watermark {node.core.high_watermark}"
            for node in self.world.nodes.values()
        )


_LIMIT_MS = 40_000
_IDLE_MS = 6_000
_APPEND_MS = 3_000
_CHANGE_MS = 2_500
_CHANGES_MAX = 16


def check_stabilization(world: World) -> None:
    """End all faults, let time pass, and check L1 to L9. Raises: Violation."""
    cluster = Stabilization(world)
    if not cluster.run(_LIMIT_MS, until_settled=True):
        if not world.checkers.can_elect():
            world.cover("nobody can be elected")
            return
        if not cluster.can_be_found():
            world.cover("no bootstrap server is a voter")
            return
        if cluster.cuts_itself_off():
            world.cover("a removed voter cuts itself off")
            return
        raise Violation("L1" if cluster.leader() is None else "L2", cluster.state())
    # All clocks were set to the latest one, so what was healthy may have timed out once.
    cluster.run(_LIMIT_MS // 10)
    leader = _settle(cluster)
    _keeps_epoch(cluster, _IDLE_MS, "L1", "although nothing is wrong")
    _entries_are_right(cluster, leader)
    _append(cluster, leader)
    trial = cluster.random.choice(_TRIALS)
    if trial(cluster, leader):
        world.cover(trial.__name__.removeprefix("_").replace("_", " "))
        world.apply("heal")
        _append(cluster, _settle(cluster))
    world.cover("stabilized")


def _entries_are_right(cluster: Stabilization, leader: Node) -> None:
    """Check that the voter set has the versions that its voters run (L4)."""
    if cluster.model(leader).version and _outdated(cluster, leader):
        # Voters report once in a fetch timeout, and one change is made at a time.
        cluster.run(_LIMIT_MS)
    found = _outdated(cluster, leader) if cluster.model(leader).version else []
    if found:
        raise Violation("L4", f"the entries of {found} have other versions: {cluster.state()}")
    newer = cluster.world.plan.newer_voter
    if any(voter.key.id == newer for voter in leader.core.voters):
        cluster.world.cover("a voter reported its versions")


def _outdated(cluster: Stabilization, leader: Node) -> list[int]:
    """Return the voters whose entries have other versions than they run."""
    keys = {node.id: cluster.model(node).key for node in cluster.world.nodes.values()}
    entries = {voter.key.id: voter for voter in leader.core.voters}
    return [
        one
        for one, voter in entries.items()
        if keys.get(one) == (one, voter.key.directory_id)
        and voter.kraft_version_max != KRAFT_VERSION_MAX
    ]


def _settle(cluster: Stabilization) -> Node:
    if not cluster.run(_LIMIT_MS, until_settled=True):
        raise Violation("L1" if cluster.leader() is None else "L2", cluster.state())
    leader = cluster.leader()
    assert leader is not None
    return leader


def _keeps_epoch(cluster: Stabilization, length_ms: int, invariant: str, when: str) -> None:
    epoch = cluster.epoch()
    cluster.run(length_ms)
    if cluster.epoch() != epoch:
        raise Violation(invariant, f"epoch {epoch} ends {when}: {cluster.state()}")


def _append(cluster: Stabilization, leader: Node) -> None:
    """Check that a client's append is committed everywhere (L2, L3)."""
    before = leader.core.end_offset
    if not cluster.world.apply("append", leader.id, 1):
        raise Violation("L3", f"{leader.id} takes no append: {cluster.state()}")
    cluster.run(_APPEND_MS)
    if leader.core.high_watermark <= before or not cluster.is_settled():
        raise Violation("L3", f"an append at {before} is not committed: {cluster.state()}")


def _isolate(cluster: Stabilization, node: Node) -> None:
    others = [one for one in cluster.world.plan.nodes if one != node.id]
    links = [(node.id, one) for one in others] + [(one, node.id) for one in others]
    cluster.world.apply("part", tuple(links))


# ---- trials: each returns whether it applied
# -----------------------------------------------------


def _isolated_leader(cluster: Stabilization, leader: Node) -> bool:
    """Check that an isolated leader resigns within 1.5 fetch timeouts, and another is elected (L7).
    """
    voters = cluster.voters(leader)
    if len(voters) < 2:
        return False
    _isolate(cluster, leader)
    cluster.run(RaftTimers().fetch_timeout_ms * 3 // 2 + 1_000)
    if leader.role == "leader":
        raise Violation("L7", f"{leader.id} leads although nobody hears it: {cluster.state()}")
    cluster.run(_IDLE_MS)
    others = [node for node in voters if node is not leader and node.role == "leader"]
    if len(voters) > 2 and len(voters) - 1 > len(cluster.model(leader).voters) // 2 and not others:
        raise Violation("L1", f"nobody leads without {leader.id}: {cluster.state()}")
    return True


def _absent_follower(cluster: Stabilization, leader: Node) -> bool:
    """Check that neither the absence of a follower nor its return ends an epoch (L8)."""
    voters = cluster.voters(leader)
    others = [node for node in cluster.world.nodes.values() if node is not leader]
    if len(voters) < 3 or leader not in voters or len(voters) < len(cluster.model(leader).voters):
        return False
    _isolate(cluster, cluster.random.choice(others))
    _keeps_epoch(cluster, _IDLE_MS, "L8", "because a follower is absent")
    cluster.world.apply("heal")
    _keeps_epoch(cluster, _IDLE_MS, "L8", "because a follower returns")
    return True


def _cut_link(cluster: Stabilization, leader: Node) -> bool:
    """Check that a follower cut off from the leader only ends no epoch, however long it lasts (L8).

    The link may be cut in one direction or both.
    """
    voters = cluster.voters(leader)
    if len(voters) < 3 or leader not in voters or len(voters) < len(cluster.model(leader).voters):
        return False
    other = cluster.random.choice([node for node in voters if node is not leader]).id
    links = [(leader.id, other), (other, leader.id)]
    chosen = cluster.random.choice((links, links[:1], links[1:]))
    cluster.world.apply("part", tuple(chosen))
    _keeps_epoch(cluster, 3 * _IDLE_MS, "L8", f"because {chosen} are cut")
    return True


def _added_voter(cluster: Stabilization, leader: Node) -> bool:
    """Check that a node that is not a voter can be added, and removed again (L4, L5)."""
    members = cluster.model(leader).voters
    if not cluster.model(leader).version:
        return False
    ids = [member[0] for member in members]
    new = [node for node in cluster.world.nodes.values() if node.id not in ids]
    if not new:
        return False
    newcomer = new[0]

    def is_in() -> bool:
        key, leading = cluster.model(newcomer).key, cluster.leader()
        return leading is not None and is_member(cluster.model(leading).voters, key)

    apply, at = cluster.world.apply, newcomer.id
    _change(cluster, is_in, lambda leading: apply("add", leading, at), f"{at} is not added")
    if cluster.world.plan.auto_join:
        return True
    _change(
        cluster,
        lambda: not is_in(),
        lambda leading: apply("remove", leading, at, False),
        f"{at} is not removed",
    )
    return True


def _change(
    cluster: Stabilization, is_done: Callable[[], bool], ask: Callable[[int], bool], text: str
) -> None:
    for _ in range(_CHANGES_MAX):
        leader = cluster.leader()
        if leader is not None:
            ask(leader.id)
        cluster.run(_CHANGE_MS)
        if is_done() and cluster.is_settled():
            return
    raise Violation("L4", f"{text}: {cluster.state()}")


_TRIALS = (_isolated_leader, _absent_follower, _cut_link, _added_voter)
