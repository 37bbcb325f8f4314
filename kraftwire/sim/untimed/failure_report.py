"""Describes a failing path in at most sixty lines, then what broke and the state of the nodes."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.sim import describe
from kraftwire.sim.failure_lines import LINES_MAX, Line, select_lines, weight_of
from kraftwire.sim.failure_summary import is_of_elections, nodes_named, report_lines
from kraftwire.sim.untimed.calls import Name
from kraftwire.sim.untimed.checkers import Checkers
from kraftwire.sim.untimed.node import Node
from kraftwire.sim.untimed.plan import Plan
from kraftwire.sim.untimed.replica_model import ReplicaModel
from kraftwire.sim.untimed.run import Outcome, play
from kraftwire.sim.untimed.world import Action, World

# Effects that explain nothing: every append is flushed, every answer is sent.
_SILENT = (
    do.DeliverCommitted,
    do.FlushLog,
    do.LeaderChanged,
    do.Note,
    do.ResetConnections,
    do.VotersChanged,
)

_NOUNS = {"quiet": "quiet step", "work": "finished task", "spoil": "failed task"}
_OF_CALLS = ("deliver", "again", "fail", "expire")


class _Recorder:
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
        world.on_step = self.step

    def about(self, what: Action) -> None:
        """Describe the next event before it happens."""
        self._kind, self._peers, self._event = _NOUNS.get(what[0], str(what[0])), (), None
        self._cause = self._call(*what) if what[0] in _OF_CALLS else _action(what)

    def _call(self, kind: str, name: Name) -> str:
        calls = self._world.calls
        call = calls.waited_for(name) if kind == "fail" else calls.on_its_way(name)
        sender, target = self._peers = name[:2]
        if call is None:
            return f"{kind} of a request from {sender} to {target}"
        request = describe.message(call.message, call.version)
        self._kind = _kind(call.message.NAME)
        if kind in ("fail", "expire"):
            self._kind = "failed request"
            return f"{sender} gives up its request to {target}: {request}"
        late = "" if call.is_awaited else ", late"
        if call.answer is None:
            once_more = " once more" if kind == "again" else ""
            return f"{sender} to {target}{once_more}{late}: {request}"
        self._kind = "response"
        self._event = events.ResponseReceived(call.request_id, call.answer)
        return f"{target} to {sender}{late}: {describe.message(call.answer)}"

    def step(self, node: Node) -> None:
        """Add a step that a node took because of the last event."""
        found = [one for one in node.trace if not isinstance(one, _SILENT)]
        came = "; ".join(describe.effects(found, self._event)) or "nothing"
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


def _action(what: Action) -> str:
    """Describe any event but a message: its name, then the node and its details."""
    kind, *rest = what
    if kind == "part":
        links = ", ".join(f"{sender} to {target}" for sender, target in rest[0])
        return f"no messages from {links}"
    return " ".join([str(kind), *(str(part) for part in rest)])


def describe_failure(plan: Plan, path: Sequence[Action]) -> list[str]:
    """Return the lines that describe a path and its end.

    At most `LINES_MAX` lines tell what happened; what broke follows.
    """
    world = World(plan)
    recorder = _Recorder(world)
    outcome = play(plan, path, world, recorder.about)
    named = nodes_named((outcome.detail, *outcome.evidence))
    involved = frozenset(node for node in (*named, recorder.last) if node in plan.nodes)
    by_votes = is_of_elections(outcome.invariant)
    evidence = list(outcome.evidence)
    if by_votes or not evidence:
        evidence += disagreement(world.checkers, involved, is_of_elections=by_votes)
    nodes, title = node_states(world, involved), _title(plan, outcome)
    shown = select_lines(recorder.lines, LINES_MAX, involved)
    return [*shown, *report_lines(title, outcome.invariant, outcome.detail, evidence, nodes)]


def _title(plan: Plan, outcome: Outcome) -> str:
    kind = "kraft.version 1" if plan.is_dynamic else "static voters"
    cluster = f"{plan.voters} voters, {plan.others} others, {kind}"
    return f"seed {plan.seed}, {cluster}: fails after {len(outcome.path)} actions"


def disagreement(
    checkers: Checkers, involved: frozenset[int], *, is_of_elections: bool
) -> list[str]:
    """Describe what these nodes disagree about.

    That is their votes, or the ends of their logs, with the end of what is committed.
    """
    models = [checkers.models[node] for node in sorted(checkers.models) if node in involved]
    if is_of_elections:
        epochs = {model.stored.epoch for model in models}
        voting = [checkers.models[node] for node in sorted(checkers.models)]
        return [_vote(model) for model in voting if model.stored.epoch in epochs]
    lines = [
        f"node {describe.replica(*model.key)}: last batch {describe.batch(model.log[-1].data)}"
        for model in models
        if model.log
    ]
    return [*lines, f"committed: {_committed(checkers)}"]


def _vote(model: ReplicaModel) -> str:
    stored, (node, directory_id) = model.stored, model.key
    if stored.leader_id == node:
        # A leader has voted for itself, but need not store that.
        return describe.vote(node, stored.epoch, node, directory_id, directory_id)
    if stored.voted is None:
        return describe.vote(node, stored.epoch, -1, own_id=directory_id)
    given = stored.voted
    return describe.vote(node, stored.epoch, given.id, given.directory_id, directory_id)


def node_states(world: World, involved: frozenset[int]) -> list[str]:
    """Return a line for each node, those involved first, and one for what is committed."""
    models = world.checkers.models
    nodes = sorted(models, key=lambda node: (node not in involved, node))
    rows = [_row(world, models[node]) for node in nodes]
    return [*describe.table(rows), f"committed: {_committed(world.checkers)}"]


def _row(world: World, model: ReplicaModel) -> tuple[str, ...]:
    node = model.key[0]
    running = world.nodes.get(node)
    return (
        f"{node}:",
        f"{running.core.role} in epoch {running.core.epoch}" if running else "down",
        f"stored {describe.stored(model.stored)}",
        f"log end {describe.position(model.end, model.last_epoch)}",
        f"durable to {model.durable}",
        describe.high_watermark(model.high_watermark),
        f"voters {describe.voters(model.voters)}",
    )


def _committed(checkers: Checkers) -> str:
    committed = checkers.history.committed
    return describe.committed(checkers.history.frontier, committed[-1].data if committed else None)
