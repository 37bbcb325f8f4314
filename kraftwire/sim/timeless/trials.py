"""What must happen once the faults have ended, and under one simple, lasting fault.

Liveness L1 to L9: the cluster settles; then, depending on the seed, a leader is isolated, a
follower is absent, a link is cut, or a voter is added and removed.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.raft.config import RaftTimers
from kraftwire.sim.timeless.calm import Calm
from kraftwire.sim.timeless.node import Node
from kraftwire.sim.timeless.world import World
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import matches

__all__ = ["check_calm"]

_LIMIT_MS = 40_000
_IDLE_MS = 6_000
_APPEND_MS = 3_000
_CHANGE_MS = 2_500
_CHANGES_MAX = 16


def check_calm(world: World) -> None:
    """End all faults, let time pass, and check L1 to L9. Raises: Violation."""
    calm = Calm(world)
    if not calm.run(_LIMIT_MS, until_settled=True):
        if not calm.can_elect():
            world.mark("nobody can be elected")
            return
        if not calm.can_be_found():
            world.mark("no bootstrap server is a voter")
            return
        if calm.cuts_itself_off():
            world.mark("a removed voter cuts itself off")
            return
        raise Violation("L1" if calm.leader() is None else "L2", calm.state())
    # All clocks were set to the latest one, so what was healthy may have timed out once.
    calm.run(_LIMIT_MS // 10)
    leader = _settle(calm)
    _keeps_epoch(calm, _IDLE_MS, "L1", "although nothing is wrong")
    _append(calm, leader)
    trial = calm.random.choice(_TRIALS)
    if trial(calm, leader):
        world.mark(trial.__name__.removeprefix("_").replace("_", " "))
        world.happen("heal")
        _append(calm, _settle(calm))
    world.mark("calmed down")


def _settle(calm: Calm) -> Node:
    if not calm.run(_LIMIT_MS, until_settled=True):
        raise Violation("L1" if calm.leader() is None else "L2", calm.state())
    leader = calm.leader()
    assert leader is not None
    return leader


def _keeps_epoch(calm: Calm, length_ms: int, invariant: str, when: str) -> None:
    epoch = calm.epoch()
    calm.run(length_ms)
    if calm.epoch() != epoch:
        raise Violation(invariant, f"epoch {epoch} ends {when}: {calm.state()}")


def _append(calm: Calm, leader: Node) -> None:
    """Check that a client's append is committed everywhere (L2, L3)."""
    before = leader.core.end_offset
    if not calm.world.happen("append", leader.id, 1):
        raise Violation("L3", f"{leader.id} takes no append: {calm.state()}")
    calm.run(_APPEND_MS)
    if leader.core.high_watermark <= before or not calm.is_settled():
        raise Violation("L3", f"an append at {before} is not committed: {calm.state()}")


def _isolate(calm: Calm, node: Node) -> None:
    others = [one for one in calm.world.plan.nodes if one != node.id]
    ways = [(node.id, one) for one in others] + [(one, node.id) for one in others]
    calm.world.happen("part", tuple(ways))


# ---- trials: each returns whether it applied
# -----------------------------------------------------


def _isolated_leader(calm: Calm, leader: Node) -> bool:
    """Check that an isolated leader resigns within 1.5 fetch timeouts, and another is elected (L7).
    """
    voters = calm.voters(leader)
    if len(voters) < 2:
        return False
    _isolate(calm, leader)
    calm.run(RaftTimers().fetch_timeout_ms * 3 // 2 + 1_000)
    if leader.role == "leader":
        raise Violation("L7", f"{leader.id} still leads although nobody hears it: {calm.state()}")
    calm.run(_IDLE_MS)
    others = [node for node in voters if node is not leader and node.role == "leader"]
    if len(voters) > 2 and len(voters) - 1 > len(calm.shelf(leader).voters) // 2 and not others:
        raise Violation("L1", f"nobody leads without {leader.id}: {calm.state()}")
    return True


def _absent_follower(calm: Calm, leader: Node) -> bool:
    """Check that neither the absence of a follower nor its return ends an epoch (L8)."""
    voters = calm.voters(leader)
    others = [node for node in calm.world.nodes.values() if node is not leader]
    if len(voters) < 3 or leader not in voters or len(voters) < len(calm.shelf(leader).voters):
        return False
    _isolate(calm, calm.random.choice(others))
    _keeps_epoch(calm, _IDLE_MS, "L8", "because a follower is absent")
    calm.world.happen("heal")
    _keeps_epoch(calm, _IDLE_MS, "L8", "because a follower returns")
    return True


def _cut_link(calm: Calm, leader: Node) -> bool:
    """Check that a follower cut off from the leader only ends no epoch, however long it lasts (L8).

    The link may be cut in one direction or both.
    """
    voters = calm.voters(leader)
    if len(voters) < 3 or leader not in voters or len(voters) < len(calm.shelf(leader).voters):
        return False
    other = calm.random.choice([node for node in voters if node is not leader]).id
    ways = [(leader.id, other), (other, leader.id)]
    chosen = calm.random.choice((ways, ways[:1], ways[1:]))
    calm.world.happen("part", tuple(chosen))
    _keeps_epoch(calm, 3 * _IDLE_MS, "L8", f"because {chosen} are cut")
    return True


def _added_voter(calm: Calm, leader: Node) -> bool:
    """Check that a node that is not a voter can be added, and removed again (L4, L5)."""
    members = calm.shelf(leader).voters
    if not calm.shelf(leader).version:
        return False
    ids = [member[0] for member in members]
    new = [node for node in calm.world.nodes.values() if node.id not in ids]
    if not new:
        return False
    newcomer = new[0]

    def is_in() -> bool:
        key, leading = calm.shelf(newcomer).key, calm.leader()
        return leading is not None and any(matches(m, key) for m in calm.shelf(leading).voters)

    happen, at = calm.world.happen, newcomer.id
    _change(calm, is_in, lambda leading: happen("add", leading, at), f"{at} is not added")
    if calm.world.plan.auto_join:
        return True
    _change(
        calm,
        lambda: not is_in(),
        lambda leading: happen("remove", leading, at, False),
        f"{at} is not removed",
    )
    return True


def _change(
    calm: Calm, is_done: Callable[[], bool], ask: Callable[[int], bool], text: str
) -> None:
    for _ in range(_CHANGES_MAX):
        leader = calm.leader()
        if leader is not None:
            ask(leader.id)
        calm.run(_CHANGE_MS)
        if is_done() and calm.is_settled():
            return
    raise Violation("L4", f"{text}: {calm.state()}")


_TRIALS = (_isolated_leader, _absent_follower, _cut_link, _added_voter)
