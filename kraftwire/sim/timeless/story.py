"""Describes a path in at most sixty lines: what happened, to which node, with what effect."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.sim import words
from kraftwire.sim.excerpt import LINES_MAX, Line, excerpt, weight_of
from kraftwire.sim.headline import ending, is_of_elections, nodes_named
from kraftwire.sim.timeless.calls import Name
from kraftwire.sim.timeless.node import Node
from kraftwire.sim.timeless.plan import Plan
from kraftwire.sim.timeless.run import Outcome, play
from kraftwire.sim.timeless.scene import sides, standing
from kraftwire.sim.timeless.world import Happening, World

__all__ = ["story"]

# Effects that explain nothing: every append is flushed, every answer is sent.
_SILENT = (
    do.DeliverCommitted,
    do.FlushLog,
    do.LeaderChanged,
    do.Note,
    do.ResetConnections,
    do.VotersChanged,
)

_NOUNS = {"calm": "calm step", "work": "finished task", "spoil": "failed task"}
_OF_CALLS = ("deliver", "again", "fail", "expire")


class _Teller:
    """Observes a world and keeps a line for every event.

    `last` is the node that took the last step.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.lines: list[Line] = []
        self.last = -1
        self._kind = "start"
        self._cause = "start"
        self._peers: tuple[int, ...] = ()
        self._event: events.Event | None = None
        world.told = self.step

    def about(self, what: Happening) -> None:
        """Describe the next event before it happens."""
        self._kind, self._peers, self._event = _NOUNS.get(what[0], str(what[0])), (), None
        self._cause = self._call(*what) if what[0] in _OF_CALLS else _happening(what)

    def _call(self, kind: str, name: Name) -> str:
        calls = self._world.calls
        call = calls.waited_for(name) if kind == "fail" else calls.on_its_way(name)
        sender, target = self._peers = name[:2]
        if call is None:
            return f"{kind} of a request from {sender} to {target}"
        asked = words.message(call.message, call.version)
        self._kind = _kind(call.message.NAME)
        if kind in ("fail", "expire"):
            self._kind = "failed request"
            return f"{sender} gives up its request to {target}: {asked}"
        late = "" if call.is_awaited else ", late"
        if call.answer is None:
            once_more = " once more" if kind == "again" else ""
            return f"{sender} to {target}{once_more}{late}: {asked}"
        self._kind = "response"
        self._event = events.ResponseReceived(call.request_id, call.answer)
        return f"{target} to {sender}{late}: {words.message(call.answer)}"

    def step(self, node: Node) -> None:
        """Add a step that a node took because of the last event."""
        found = [one for one in node.trace if not isinstance(one, _SILENT)]
        came = "; ".join(words.effects(found, self._event)) or "nothing"
        self.last = node.id
        if self._cause == "start" and came == "nothing":
            return
        nodes = (node.id, *(peer for peer in self._peers if peer != node.id))
        text = f"{self._cause} | {node.id}: {came}"
        head = f"{len(self.lines):3} "
        self.lines.append(Line(nodes, weight_of(found), self._kind, head, text.strip))
        self._cause = "then" if self._cause != "start" else "start"


def _kind(name: str) -> str:
    return "fetch" if name == "FetchRequest" else f"{name.removesuffix('Request')} request"


def _happening(what: Happening) -> str:
    """Describe any event but a message: its name, then the node and its details."""
    kind, *rest = what
    if kind == "part":
        ways = ", ".join(f"{sender} to {target}" for sender, target in rest[0])
        return f"no messages from {ways}"
    return " ".join([str(kind), *(str(part) for part in rest)])


def story(plan: Plan, path: Sequence[Happening]) -> list[str]:
    """Return the lines that describe a path and its end.

    At most `LINES_MAX` lines tell what happened; what broke follows.
    """
    world = World(plan)
    teller = _Teller(world)
    outcome = play(plan, path, world, teller.about)
    named = nodes_named((outcome.detail, *outcome.odds))
    at_odds = frozenset(node for node in (*named, teller.last) if node in plan.nodes)
    by_votes = is_of_elections(outcome.invariant)
    odds = list(outcome.odds)
    if by_votes or not odds:
        odds += sides(world.book, at_odds, is_of_elections=by_votes)
    nodes, title = standing(world, at_odds), _title(plan, outcome)
    told = excerpt(teller.lines, LINES_MAX, at_odds)
    return [*told, *ending(title, outcome.invariant, outcome.detail, odds, nodes)]


def _title(plan: Plan, outcome: Outcome) -> str:
    kind = "kraft.version 1" if plan.is_dynamic else "static voters"
    cluster = f"{plan.voters} voters, {plan.others} others, {kind}"
    return f"seed {plan.seed}, {cluster}: fails after {len(outcome.path)} happenings"
