"""Tells a path in at most sixty lines: what happened, to whom, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.raft import effects as do
from kraftwire.sim import words
from kraftwire.sim.invariants import meaning
from kraftwire.sim.timeless.node import Node
from kraftwire.sim.timeless.plan import Plan
from kraftwire.sim.timeless.run import Outcome, play
from kraftwire.sim.timeless.world import Happening, World

__all__ = ["LINES_MAX", "story"]

LINES_MAX = 60
_WIDTH = 150

# What is shown of the end where the middle is left out.
_LAST = 20

# What explains nothing in a story: every append is flushed, every answer is sent.
_SILENT = (do.FlushLog, do.ResetConnections, do.DeliverCommitted, do.Note, do.VotersChanged)


class _Teller:
    """Listens to a world and keeps a line for every happening."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lines: list[str] = []
        self._cause = "start"
        world.told = self.step

    def about(self, what: Happening) -> None:
        """Say what comes next, before it happens."""
        self._cause = self._name(what)

    def _name(self, what: Happening) -> str:
        kind = what[0]
        if kind in ("deliver", "again", "fail", "expire"):
            calls = self._world.calls
            call = calls.waited_for(what[1]) if kind == "fail" else calls.on_its_way(what[1])
            sender, target = what[1][:2]
            if call is None:
                return f"{kind} {what[1]}"
            if kind in ("fail", "expire"):
                return f"{sender} gives up {words.message(call.message)} to {target}"
            once_more = " once more" if kind == "again" else ""
            late = "" if call.is_awaited else ", late"
            if call.answer is None:
                return f"{sender} to {target}{once_more}{late}: {words.message(call.message)}"
            return f"{target} to {sender}{late}: {words.message(call.answer)}"
        return " ".join(str(part) for part in what)

    def step(self, node: Node) -> None:
        """A node took a step because of what was said last."""
        found = [words.effect(one) for one in node.trace if not isinstance(one, _SILENT)]
        came = "; ".join(text for text in found if text) or "nothing"
        if self._cause == "start" and came == "nothing":
            return
        line = f"{self._cause} | {node.id}: {came}"
        if len(line) > _WIDTH:
            line = line[: _WIDTH - 4] + " ..."
        self.lines.append(line)
        self._cause = "then" if self._cause != "start" else "start"


def story(plan: Plan, path: Sequence[Happening]) -> list[str]:
    """What happens on a path, and how it ends. At most `LINES_MAX` lines."""
    world = World(plan)
    teller = _Teller(world)
    outcome = play(plan, path, world, teller.about)
    head = _head(plan, outcome)
    room = LINES_MAX - len(head)
    lines = [f"{number:3} {line}" for number, line in enumerate(teller.lines)]
    if len(lines) > room:
        gone = len(lines) - room + 1
        first = room - 1 - _LAST
        lines = [*lines[:first], f"    ... {gone} steps ...", *lines[-_LAST:]]
    return [*lines, *head]


def _head(plan: Plan, outcome: Outcome) -> list[str]:
    kind = "kraft.version 1" if plan.is_dynamic else "static voters"
    cluster = f"{plan.voters} voters, {plan.others} others, {kind}"
    return [
        f"{outcome.invariant}: {outcome.detail}",
        *(f"    {line}" for line in outcome.odds),
        f"    must hold: {meaning(outcome.invariant)}",
        f"    cluster: {cluster}; {len(outcome.path)} happenings",
    ]
