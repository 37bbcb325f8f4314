"""What must happen once the trouble is over: the cluster gets time, and everything arrives.

Liveness L1 to L5, in virtual time: messages take a few milliseconds, everything else none.
"""

from __future__ import annotations

from random import Random

from kraftwire.sim.timeless.node import Node
from kraftwire.sim.timeless.shelves import matches
from kraftwire.sim.timeless.world import World
from kraftwire.sim.violation import Violation

__all__ = ["check_calm"]

_LIMIT_MS = 40_000
_IDLE_MS = 6_000
_STEPS_MAX = 100_000

# The share of messages that arrive within a millisecond.
_ARRIVES = 0.4


def check_calm(world: World) -> None:
    """Heal everything and let time pass. Raises: Violation."""
    world.heal()
    for node in world.plan.nodes:
        world.start(node)
    calm = _Calm(world)
    if not calm.run(_LIMIT_MS, until_settled=True):
        raise Violation("L1" if calm.leader() is None else "L2", calm.state())
    epoch = max(node.epoch for node in world.nodes.values())
    calm.run(_IDLE_MS, until_settled=False)
    if max(node.epoch for node in world.nodes.values()) != epoch:
        raise Violation("L1", f"epoch {epoch} ends although nothing is wrong: {calm.state()}")
    world.mark("calmed down")


class _Calm:
    """A cluster without trouble, all of whose nodes have the same clock."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._now = max(node.now for node in world.nodes.values())
        self._random = Random(f"calm {world.plan.seed}")

    def run(self, length_ms: int, *, until_settled: bool) -> bool:
        """Let so much time pass; returns whether the cluster settled."""
        end = self._now + length_ms
        world = self._world
        for _ in range(_STEPS_MAX):
            self._deliver_all()
            if until_settled and self._is_settled():
                return True
            due = [node.due for node in world.nodes.values()]
            times = [at for at in due if at is not None]
            if world.pending:
                times.append(self._now + 1)
            if not times or min(times) > end:
                return self._is_settled()
            self._now = max(self._now, min(times))
            self._timers()
        raise Violation("L9", f"no rest: {self.state()}")

    def _timers(self) -> None:
        for node in list(self._world.nodes.values()):
            due = node.due
            if due is not None and due <= self._now:
                self._world.timer(node.id)

    def _deliver_all(self) -> None:
        """All that is on its way arrives, all work ends; what comes of it does later."""
        world = self._world
        for node in list(world.nodes.values()):
            node.now = max(node.now, self._now)
        for call in list(world.lost):
            world.fail(call.name)
        for call in list(world.pending):
            if self._random.random() < _ARRIVES:
                world.deliver(call.name)
        for node in list(world.nodes.values()):
            while node.work and node.id in world.nodes:
                world.work(node.id, node.work[0].kind)

    def leader(self) -> Node | None:
        """Who leads the newest epoch."""
        leading = [node for node in self._world.nodes.values() if node.role == "leader"]
        return max(leading, key=lambda node: node.epoch, default=None)

    def _is_settled(self) -> bool:
        """All voters follow one leader and know everything to be committed."""
        leader = self.leader()
        if leader is None:
            return False
        end = leader.core.end_offset
        for node in self._world.nodes.values():
            core = node.core
            shelf = self._world.book.shelves[node.id]
            is_voter = any(
                matches(member, shelf.key)
                for member in self._world.book.shelves[leader.id].voters
            )
            if core.leader_id != leader.id or core.epoch != leader.epoch:
                return False
            if core.high_watermark != end or (is_voter and core.end_offset != end):
                return False
        return True

    def state(self) -> str:
        """Where everybody is."""
        return "; ".join(
            f"{node.id} {node.role} of {node.epoch} under {node.core.leader_id}, log "
            f"{node.core.end_offset}, high watermark {node.core.high_watermark}"
            for node in self._world.nodes.values()
        )
