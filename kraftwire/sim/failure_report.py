"""The report of a failure, the same in every kind of simulation: what happened, what broke, the
contradicting facts, and the state of the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kraftwire.raft.core import RaftCore
from kraftwire.raft.voters import ReplicaKey
from kraftwire.sim import describe
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.invariants import Violation, meaning
from kraftwire.sim.timeline import Timeline

# How texts about a violation name a node: at their start, or after one of these words.
_NODE = re.compile(r"(?:^|\b(?:at|candidate|leader|node|says|voter) )(\d+)\b")

# A value with its field names, as Python shows it, and a field in it.
_SHOWN = re.compile(r"\b[A-Z]\w*\((\w+=[^()]*)\)")
_FIELD = re.compile(r"\b(\w+)=")

# Invariants about votes and leaders rather than logs.
_ELECTIONS = {"S1", "S2", "S3", "S4", "S17", "S18", "S19", "S20"}


def describe_failure(
    title: str,
    violation: Violation,
    timeline: Timeline,
    checkers: Checkers | None = None,
    cores: Mapping[int, RaftCore] | None = None,
) -> list[str]:
    """Return the lines that describe how a cluster failed: those of its timeline, which say what
    happened, then what broke and how the nodes stand. A cluster of replicas has `checkers`, and the
    `cores` of its running nodes."""
    models = checkers.models if checkers is not None else {}
    texts = (violation.detail, *violation.evidence)
    named = {int(found) for text in texts for found in _NODE.findall(text)}
    involved = frozenset((named | {timeline.last}) & set(models))
    evidence = list(violation.evidence)
    nodes: list[str] = []
    # Before any node has taken a step there is nothing to show.
    if checkers is not None and timeline.last >= 0:
        by_votes = violation.invariant in _ELECTIONS
        if by_votes or not evidence:
            evidence += _disagreement(checkers, involved, is_of_elections=by_votes)
        nodes = _node_states(checkers, cores or {}, involved)
    shown = Violation(violation.invariant, violation.detail, *evidence)
    return [*timeline.select(involved), title, *summary_lines(shown), *_titled(_STATES, nodes)]


_STATES = "state of the nodes, those involved first"


def summary_lines(violation: Violation) -> list[str]:
    """Describe a violation: the invariant and what happened, what must hold, the contradicting
    facts."""
    return [
        f"{violation.invariant}: {_plain(violation.detail)}",
        f"    must hold: {meaning(violation.invariant)}",
        *_titled("evidence", [_plain(line) for line in violation.evidence]),
    ]


def _titled(title: str, lines: Sequence[str]) -> list[str]:
    """Return lines under a title; nothing if there are none."""
    return [f"    {title}:", *(f"        {line}" for line in lines)] if lines else []


def _plain(text: str) -> str:
    """Simplify the `repr` of values in a text, which may come from any error."""
    return _SHOWN.sub(lambda found: _FIELD.sub(r"\1 ", found[1]), text)


def _disagreement(
    checkers: Checkers, involved: Iterable[int], *, is_of_elections: bool
) -> list[str]:
    """Describe what nodes disagree about, with the end of what is committed: the last batches of
    these, or the votes of these and of all others in the same epochs."""
    everyone = [checkers.models[node] for node in sorted(checkers.models)]
    models = [model for model in everyone if model.key[0] in involved]
    committed = f"committed: {_committed(checkers)}"
    if is_of_elections:
        epochs = {model.stored.epoch for model in models}
        votes = [_vote(one, checkers.models) for one in everyone if one.stored.epoch in epochs]
        return [*votes, committed]
    lines = [
        f"node {describe.replica(*model.key)}: last batch {describe.batch(model.log[-1].data)}"
        for model in models
        if model.log
    ]
    return [*lines, committed]


def _vote(model: ReplicaModel, models: Mapping[int, ReplicaModel]) -> str:
    stored, (node, directory_id) = model.stored, model.key
    # A leader has voted for itself, but need not store that.
    given = ReplicaKey(*model.key) if stored.leader_id == node else stored.voted
    if given is None:
        return describe.vote(node, stored.epoch, -1, own_id=directory_id)
    candidate = given.directory_id
    if not given.has_directory_id and given.id in models:
        candidate = models[given.id].key[1]
    return describe.vote(node, stored.epoch, given.id, candidate, directory_id)


def _node_states(
    checkers: Checkers, cores: Mapping[int, RaftCore], involved: Iterable[int]
) -> list[str]:
    """Return a line for each node, those involved first, and one for what is committed."""
    models = checkers.models
    nodes = sorted(models, key=lambda node: (node not in involved, node))
    roles = {node: f"{core.role} in epoch {core.epoch}" for node, core in cores.items()}
    rows = [_row(models[node], roles.get(node, "down")) for node in nodes]
    return [*describe.table(rows), f"committed: {_committed(checkers)}"]


def _row(model: ReplicaModel, role: str) -> tuple[str, ...]:
    return (
        f"{model.key[0]}:",
        role,
        f"stored {describe.stored(model.stored)}",
        f"log end {describe.position(model.end, model.last_epoch)}",
        f"durable to {model.durable}",
        describe.high_watermark(model.high_watermark),
        f"voters {describe.voters(model.voters)}",
    )


def _committed(checkers: Checkers) -> str:
    committed = checkers.history.committed
    return describe.committed(checkers.history.frontier, committed[-1].data if committed else None)
