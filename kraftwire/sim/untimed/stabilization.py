"""Ends the faults of a cluster without time, lets time pass in it, and shows it to the checks of
liveness: messages take a few milliseconds, disks no time, all clocks are equal.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random

from kraftwire.sim.checks.liveness import HealedCluster, Link, check_liveness
from kraftwire.sim.checks.voters import Key, Voters, is_member
from kraftwire.sim.invariants import Violation
from kraftwire.sim.untimed.node import Node
from kraftwire.sim.untimed.world import UntimedWorld

_STEPS_MAX = 100_000

# The share of messages that arrive within a millisecond.
_ARRIVES = 0.4

# Pauses between attempts last up to three seconds, and there may be several.
_ELECTION_MS = 40_000
_FETCH_MS = 10

# An operator repeats a request after this time.
_PATIENCE_MS = 2_500

# All clocks are set to the latest one, so what was healthy may time out once.
_RESIDUE_MS = 4_000


def check_stabilization(world: UntimedWorld) -> None:
    """End all faults, let time pass, and check L1 to L10. Raises: Violation."""
    cluster = Stabilization(world)
    cluster.pass_time(_RESIDUE_MS)
    if check_liveness(cluster):
        world.cover("stabilized")
        newer = world.plan.newer_voter
        if any(voter.key.id == newer for voter in cluster.leader().core.voters):
            world.cover("a voter reported its versions")


class Stabilization(HealedCluster):
    """A cluster without time after its faults."""

    has_pre_votes = True
    residue_ms = 0
    election_ms = _ELECTION_MS
    fetch_cost_ms = _FETCH_MS

    def __init__(self, world: UntimedWorld) -> None:
        """End all faults: nodes that are shutting down are stopped, then all stopped nodes start.
        """
        self.world = world
        self.checkers, self.timers = world.checkers, world.members.timers
        self.seed, self.nodes = world.plan.seed, world.plan.nodes
        self.cover = world.cover
        self.bootstrap = world.members.first
        self._random = Random(f"stabilization {world.plan.seed}")
        self._wakeups: Counter[int] = Counter()
        self._changes: list[tuple[str, Key]] = []
        self._asked_ms = 0
        world.apply("heal")
        for node in list(world.nodes.values()):
            world.apply("cancel_cut", node.id)
            if node.is_leaving:
                world.apply("crash", node.id, 0)
        self._start_all()
        self._now = max(node.now for node in world.nodes.values())

    def running(self) -> dict[int, Node]:
        """Return the running replicas, by id."""
        return self.world.nodes

    def leader(self) -> Node:
        """The leader of the newest epoch; any node if there is none."""
        nodes = self.world.nodes.values()
        return max(nodes, key=lambda node: (node.role == "leader", node.epoch))

    def pass_time(self, length_ms: int) -> None:
        """Let time pass."""
        end = self._now + length_ms
        for _ in range(_STEPS_MAX):
            at = self._next_time()
            if at is None or at > end:
                self._now = end
                return
            self._now = max(self._now, at)
            self._timers()
            self._deliver_all()
        raise Violation("L9", f"no rest within {length_ms} ms")

    def _next_time(self) -> int | None:
        world = self.world
        due = [node.due for node in world.nodes.values()]
        times = [at for at in due if at is not None]
        is_one_down = len(world.nodes) < len(self.nodes)
        if is_one_down or any(world.passes(call) for call in world.calls.pending):
            times.append(self._now + 1)
        return min(times, default=None)

    def _timers(self) -> None:
        for node in list(self.world.nodes.values()):
            due = node.due
            if due is not None and due <= self._now:
                self._wakeups[node.id] += 1
                self.world.apply("timer", node.id)

    def _start_all(self) -> None:
        for at in self.nodes:
            self.world.apply("start", at)

    def _deliver_all(self) -> None:
        """Deliver all messages in flight and finish all work; new messages are delivered later."""
        world = self.world
        self._start_all()
        for call in list(world.calls.lost):
            # A call that was already given up must not be mistaken for the newest of its kind.
            if call.is_awaited:
                world.apply("fail", call.name)
        for call in list(world.calls.pending):
            if not world.passes(call):
                # It never arrives: the node that waits for the answer gives up in time.
                if self._now >= call.deadline_ms:
                    world.apply("expire", call.name)
            elif self._random.random() < _ARRIVES:
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

    def cut(self, links: list[Link]) -> None:
        """Cut links, each in one direction."""
        self.world.apply("part", tuple(links))

    def restore(self) -> None:
        """Restore the links that were cut."""
        self.world.apply("heal")

    def append(self, leader: int) -> None:
        """Let a client append at a leader."""
        self.world.apply("append", leader, 1)

    def applied(self, node: int) -> int | None:
        """Return the end of what a node's state machine has, None without one."""
        return self.world.nodes[node].applied.offset if self.world.plan.with_state else None

    def wakeups(self, node: int) -> int:
        """Return how often a timer of a node has been due."""
        return self._wakeups[node]

    def events(self) -> int:
        """Return how many actions there were."""
        return len(self.world.history)

    def replace_disk(self, node: int) -> bool:
        """Give a node an empty disk, if the quorum can do without its old one."""
        world = self.world
        if not world.members.may_wipe(node, world.checkers):
            return False
        world.apply("crash", node, 0)
        world.apply("wipe", node)
        return world.apply("start", node)

    def begin_changes(self, *changes: tuple[str, Key]) -> None:
        """Let an operator add or remove voters, in this order, until it is done."""
        self._changes += changes

    def changes_left(self) -> int:
        """Return how many changes are left, after asking the leader for the first one."""
        leader = self.leader().id
        voters = self.checkers.models[leader].voters
        while self._changes and self._is_made(voters):
            self._changes.pop(0)
        if self._changes and self._now >= self._asked_ms + _PATIENCE_MS:
            self._asked_ms = self._now
            kind, key = self._changes[0]
            keys = self.world.members.earlier_key
            age = next(age for age in count() if keys(key[0], age) == key)
            self.world.apply(kind, leader, key[0], *([age] if kind == "remove" else ()))
        return len(self._changes)

    def _is_made(self, voters: Voters) -> bool:
        kind, key = self._changes[0]
        return is_member(voters, key) == (kind == "add")
