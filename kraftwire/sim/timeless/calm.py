"""A cluster without faults, in virtual time: everything arrives, everything finishes.

Messages take a few milliseconds, disks no time, and all clocks are equal.
"""

from __future__ import annotations

from random import Random

from kraftwire.sim.timeless.node import Node
from kraftwire.sim.timeless.shelves import Shelf
from kraftwire.sim.timeless.world import World
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import matches

__all__ = ["Calm"]

_STEPS_MAX = 100_000

# The share of messages that arrive within a millisecond.
_ARRIVES = 0.4


class Calm:
    """Lets time pass in a world without faults. Units: milliseconds."""

    def __init__(self, world: World) -> None:
        """End all faults: nodes that are shutting down are stopped, then all stopped nodes start.
        """
        self.world = world
        self.random = Random(f"calm {world.plan.seed}")
        world.happen("heal")
        for node in list(world.nodes.values()):
            node.left = None
            if node.is_leaving:
                world.happen("crash", node.id, 0)
        for at in world.plan.nodes:
            world.happen("start", at)
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
                self.world.happen("timer", node.id)

    def _deliver_all(self) -> None:
        """Deliver all messages in flight and finish all work; new messages are delivered later."""
        world = self.world
        for at in world.plan.nodes:
            world.happen("start", at)
        for call in list(world.calls.lost):
            # A call that was already given up must not be mistaken for the newest of its kind.
            if call.is_awaited:
                world.happen("fail", call.name)
        for call in list(world.calls.pending):
            if not world.passes(call):
                # It never arrives: the node that waits for the answer gives up in time.
                if self._now >= call.deadline_ms:
                    world.happen("expire", call.name)
            elif self.random.random() < _ARRIVES:
                self._wake(call.way[1])
                world.happen("deliver", call.name)
        for node in list(world.nodes.values()):
            while node.work and node.id in world.nodes:
                self._wake(node.id)
                world.happen("work", node.id, node.work[0].kind)

    def _wake(self, at: int) -> None:
        """Set a node's clock to the present time."""
        node = self.world.nodes.get(at)
        if node is not None and node.now < self._now:
            self.world.happen("clock", at, self._now)

    def leader(self) -> Node | None:
        """The leader of the newest epoch."""
        leading = [node for node in self.world.nodes.values() if node.role == "leader"]
        return max(leading, key=lambda node: node.epoch, default=None)

    def epoch(self) -> int:
        """The newest epoch."""
        return max(node.epoch for node in self.world.nodes.values())

    def shelf(self, node: Node) -> Shelf:
        """Return what the checks know of a node."""
        return self.world.book.shelves[node.id]

    def voters(self, leader: Node) -> list[Node]:
        """The nodes in the voter set of a leader."""
        members = self.shelf(leader).voters
        nodes = self.world.nodes.values()
        return [n for n in nodes if any(matches(m, self.shelf(n).key) for m in members)]

    def is_settled(self) -> bool:
        """Whether all nodes follow one leader and know that all records are committed."""
        leader = self.leader()
        return leader is not None and self._follow(leader, list(self.world.nodes.values()))

    def cuts_itself_off(self) -> bool:
        """Return whether only a voter that missed its removal, and stood after it, is not settled.

        It had been granted pre-votes, so its epoch is after the leader's, and the leader does not
        adopt the epoch of a replica that is not a voter; the next election brings it back. Other
        nodes that it asked for votes may be in its epoch too, unless they are voters.
        """
        leader = self.leader()
        if leader is None:
            return False
        late = [node for node in self.world.nodes.values() if node.epoch > leader.epoch]
        others = [node for node in self.world.nodes.values() if node not in late]
        missed = (any(matches(m, self.shelf(n).key) for m in self.shelf(n).voters) for n in late)
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

    def can_elect(self) -> bool:
        """Whether a replica that may stand has a log that a majority of its voter set may vote for.

        There may be none: of the two voters that are left after a third was removed, one may have
        lost its disk before, so that its present replica is not in the set.
        """
        shelves = self.world.book.shelves.values()
        for shelf in shelves:
            log = (shelf.last_epoch, shelf.end)
            older = [one.key for one in shelves if (one.last_epoch, one.end) <= log]
            willing = [m for m in shelf.voters if any(matches(m, key) for key in older)]
            if shelf.may_stand() and 2 * len(willing) > len(shelf.voters):
                return True
        return False

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
