"""How some untimed clusters begin: situations that random events alone reach too seldom.

A bootstrap state is the brink of a situation, which a sequence of events leads to; random events
follow. The sequence is part of the path of its cluster, and ends early if it leads elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.untimed.node import Node
from kraftwire.sim.untimed.plan import UntimedPlan
from kraftwire.sim.untimed.world import Action, UntimedWorld

# Events until a situation is given up.
_PATIENCE = 300

# Longer than any fetch timeout.
_SILENCE_MS = 10_000


class _Director:
    """Chooses the next event of a sequence: messages first, then work, then timers."""

    def __init__(self, world: UntimedWorld) -> None:
        self.world = world

    def until(self, done: Callable[[], bool], prefer: int = 0) -> Iterator[Action]:
        """Let the cluster run until something is so, or patience ends.

        The timers of the node `prefer` come first.
        """
        for _ in range(_PATIENCE):
            if done():
                return
            what = self._next(prefer)
            if what is None:
                return
            yield what

    def work(self, at: int, kind: str) -> Iterator[Action]:
        """Finish a node's work of a kind."""
        for one in [one for one in self.nodes.get(at, _NOBODY).work if one.kind == kind]:
            yield "work", at, one.kind

    def part(self, *lone: int) -> Action:
        """Cut some nodes off from the others."""
        nodes = self.world.plan.nodes
        links = ((a, b) for a in nodes for b in nodes if (a in lone) != (b in lone))
        return "part", tuple(links)

    @property
    def nodes(self) -> dict[int, Node]:
        """The running nodes."""
        return self.world.nodes

    def model(self, at: int) -> ReplicaModel:
        """What the checks know of a node."""
        return self.world.checkers.models[at]

    def leader(self, after: int = 0) -> Node | None:
        """The newest leader, if its epoch is later than this one."""
        leading = [node for node in self.nodes.values() if node.role == "leader"]
        newest = max(leading, key=lambda node: node.epoch, default=None)
        return newest if newest is not None and newest.epoch > after else None

    def agree(self, after: int = 0) -> bool:
        """Whether a leader of a later epoch is followed, and all is committed and applied, on all
        nodes that it can reach."""
        leader = self.leader(after)
        if leader is None:
            return False
        end, cut = leader.core.end_offset, self.world.cut_links
        near = [one for one in self.nodes.values() if (leader.id, one.id) not in cut]
        return all(
            one.core.end_offset == one.core.high_watermark == end
            and (not self.world.plan.with_state or one.applied.offset == end)
            for one in near
        )

    def _next(self, prefer: int) -> Action | None:
        calls = self.world.calls
        for call in calls.pending:
            if call.is_awaited and self.world.passes(call):
                return "deliver", call.name
        for node in self.nodes.values():
            if node.work:
                return "work", node.id, node.work[0].kind
        stuck = next((call for call in calls.awaited()), None)
        due = [node for node in self.nodes.values() if node.due is not None]
        first = next((node for node in due if node.id == prefer), None)
        if first is None and stuck is not None and self._is_lost(stuck):
            return "expire" if stuck in calls.pending else "fail", stuck.name
        first = first or min(due, key=lambda node: node.due or 0, default=None)
        return ("timer", first.id) if first is not None else None

    def _is_lost(self, call: Any) -> bool:
        return call in self.world.calls.lost or not self.world.passes(call)


class _Nobody:
    work: tuple[Any, ...] = ()


_NOBODY: Any = _Nobody()


def _cut_off_change(world: UntimedWorld) -> Iterator[Action]:
    """A leader that nobody hears writes a voter set right after the end of a snapshot.

    Its log is truncated once it follows again, and the set before is in force.
    """
    director = _Director(world)
    yield from director.until(director.agree)
    leader = director.leader()
    if leader is None:
        return
    yield director.part(leader.id)
    other = next(one for one in director.nodes if one != leader.id)
    yield "remove", leader.id, other, 0
    yield from director.work(leader.id, "flush")
    yield "snapshot", leader.id
    yield from director.work(leader.id, "write")
    if leader.applied.offset == director.model(leader.id).sets[-1][0]:
        world.cover("snapshot up to a change of the voters")
    yield from director.until(lambda: director.agree(leader.epoch))
    yield ("heal",)
    yield from director.until(lambda: director.agree(leader.epoch))


def _removed_before_another_change(world: UntimedWorld) -> Iterator[Action]:
    """A voter is removed that would join by itself, and then the others change."""
    director = _Director(world)
    yield from director.until(director.agree)
    leader = director.leader()
    if leader is None:
        return
    first, second = [one for one in director.nodes if one != leader.id][:2]
    yield "remove", leader.id, first, 0
    yield from director.until(director.agree)
    yield "remove", leader.id, second, 0
    yield from director.until(director.agree)
    sets = director.model(first).sets
    if not director.model(first).is_voter() and len(sets) > 2:
        world.cover("the others changed after a removal")
    yield from director.until(lambda: False, prefer=first)


def _same_end_of_another_epoch(world: UntimedWorld) -> Iterator[Action]:
    """A follower's log ends where its leader's begins, with another record before it.

    The first leader writes a record that nobody has. The next leader writes another at that offset
    and dies. The first one leads again; a voter that lags behind takes its snapshot just after that
    record, and leads when the dead node comes back.
    """
    director = _Director(world)
    yield from director.until(director.agree)
    old = director.leader()
    if old is None:
        return
    yield director.part(old.id)
    yield "append", old.id, 1
    yield from director.work(old.id, "flush")
    end, epoch = old.core.end_offset, old.epoch
    yield from director.until(lambda: director.leader(epoch) is not None)
    rival = director.leader(epoch)
    if rival is None:
        return
    yield "crash", rival.id, 1
    late = next(one for one in director.nodes if one != old.id)
    yield director.part(late)
    yield from director.until(lambda: director.agree(rival.epoch), prefer=old.id)
    yield ("heal",)
    yield from director.until(lambda: director.nodes[late].core.high_watermark >= end)
    yield from director.work(late, "deliver")
    yield "snapshot", late
    yield from director.work(late, "write")
    yield from director.until(director.agree)
    yield "retain", late, 0
    leads = director.leader()
    if leads is None or director.nodes[late].core.start_offset != end:
        return
    yield director.part(leads.id)
    # They have not heard from the leader for long, or they would not help to replace it.
    for one in [one for one in director.nodes.values() if one.id not in (late, leads.id)]:
        yield "clock", one.id, one.now + _SILENCE_MS
    yield from director.until(lambda: director.leader(leads.epoch) is not None, prefer=late)
    yield ("start", rival.id)
    if rival.disk.end == end:
        world.cover("a log ends where another begins, in another epoch")
    yield ("heal",)
    yield from director.until(lambda: director.agree(leads.epoch))


def _snapshot_read_to_its_end(world: UntimedWorld) -> Iterator[Action]:
    """A client reads a snapshot of the leader up to its end, and beyond."""
    director = _Director(world)
    yield from director.until(director.agree)
    leader = director.leader()
    if leader is None:
        return
    yield "snapshot", leader.id
    yield from director.work(leader.id, "write")
    for beyond in (-1, 0, 1):
        yield "read", leader.id, beyond


def _voter_of_a_later_release(world: UntimedWorld) -> Iterator[Action]:
    """A voter runs an earlier release than when it became one, and reports its versions."""
    director = _Director(world)
    yield from director.until(director.agree)
    leader = director.leader()
    if leader is not None and leader.id != world.plan.newer_voter:
        yield from director.until(lambda: False, prefer=world.plan.newer_voter)


_BY_NAME: dict[str, Callable[[UntimedWorld], Iterator[Action]]] = {
    "cut-off change": _cut_off_change,
    "removed before another change": _removed_before_another_change,
    "same end of another epoch": _same_end_of_another_epoch,
    "snapshot read to its end": _snapshot_read_to_its_end,
    "voter of a later release": _voter_of_a_later_release,
}


def bootstrap_actions(plan: UntimedPlan, world: UntimedWorld) -> Iterator[Action]:
    """Return the events that lead to the bootstrap state of a plan."""
    return _BY_NAME[plan.bootstrap_state](world) if plan.bootstrap_state else iter(())
