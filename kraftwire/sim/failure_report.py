"""Describes how a plan fails: what happened, the invariant and the evidence, and all nodes."""

from __future__ import annotations

from kraftwire.sim import describe
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.failure_summary import is_of_elections, nodes_named, report_lines
from kraftwire.sim.plan import Plan
from kraftwire.sim.run import run_cluster
from kraftwire.sim.timeline import Timeline


def describe_failure(plan: Plan, lines: int = LINES_MAX) -> list[str]:
    """Run a plan and describe how it ends.

    At most `lines` lines of timeline, then what broke and how the nodes stand. One line if
    the plan violates nothing.
    """
    timeline = Timeline(lines)
    cluster = Cluster(plan, timeline)
    outcome = run_cluster(cluster)
    if not outcome.invariant:
        return [f"seed {plan.seed}: nothing is violated in {outcome.virtual_seconds:.0f} s"]
    named = nodes_named((outcome.detail, *outcome.evidence))
    involved = frozenset(node for node in (*named, timeline.last) if 0 < node <= plan.nodes)
    nodes: list[str] = []
    evidence = list(outcome.evidence)
    # Before any node has taken a step there is nothing to show.
    if timeline.last >= 0:
        nodes = node_states(cluster, involved)
        by_votes = is_of_elections(outcome.invariant)
        if by_votes or not evidence:
            evidence += disagreement(cluster, involved, is_of_elections=by_votes)
    title = f"seed {plan.seed}, {_size(plan)}: fails after {outcome.virtual_seconds:.3f} s"
    end = report_lines(title, outcome.invariant, outcome.detail, evidence, nodes)
    return [*timeline.select(involved), *end]


def _size(plan: Plan) -> str:
    """Describe a plan in a few words."""
    counts = [(plan.voters, "voter"), (plan.observers, "observer"), (len(plan.faults), "fault")]
    sizes = [f"{count} {noun if count == 1 else noun + 's'}" for count, noun in counts if count]
    return ", ".join(sizes)


def disagreement(
    cluster: Cluster, involved: frozenset[int], *, is_of_elections: bool
) -> list[str]:
    """Describe what these nodes disagree about: their votes, or the ends of their logs, with the
    end of what is committed."""
    nodes = [node for node in sorted(cluster.machines) if node in involved]
    if is_of_elections:
        return _votes(cluster, nodes)
    logs = cluster.log_checks.logs
    lines = [
        f"node {_named(cluster, node)}: last batch {describe.batch(logs[node].batches[-1].data)}"
        for node in nodes
        if logs[node].batches
    ]
    return [*lines, f"committed: {_committed(cluster)}"]


def _votes(cluster: Cluster, nodes: list[int]) -> list[str]:
    """Describe the votes of these nodes, and of all that have stored the same epochs."""
    stored = cluster.election_checks.stored
    epochs = {stored[node].epoch for node in nodes if node in stored}
    lines = []
    for voter, one in sorted(stored.items()):
        if one.epoch in epochs:
            # A leader has voted for itself, but need not store that.
            candidate = voter if one.leader == voter else one.vote
            ids = _directory(cluster, candidate), _directory(cluster, voter)
            lines.append(describe.vote(voter, one.epoch, candidate, *ids))
    return lines


def node_states(cluster: Cluster, involved: frozenset[int]) -> list[str]:
    """Return a line for each node, those involved first, and one for what is committed."""
    nodes = sorted(cluster.machines, key=lambda node: (node not in involved, node))
    rows = [_row(cluster, node) for node in nodes]
    return [*describe.table(rows), f"committed: {_committed(cluster)}"]


def _committed(cluster: Cluster) -> str:
    checks = cluster.log_checks
    last = checks.committed[-1].data if checks.committed else None
    return describe.committed(checks.frontier, last)


def _directory(cluster: Cluster, node: int) -> bytes:
    machine = cluster.machines.get(node)
    process = machine.process if machine is not None else None
    return process.storage.directory_id if process is not None else b""


def _named(cluster: Cluster, node: int) -> str:
    return describe.replica(node, _directory(cluster, node))


def _row(cluster: Cluster, node: int) -> tuple[str, ...]:
    process = cluster.machines[node].process
    log, stored = cluster.log_checks.logs[node], cluster.election_checks.stored.get(node)
    role = f"{process.core.role} in epoch {process.core.epoch}" if process else "down"
    stored_text = "nothing stored"
    if stored is not None:
        vote = f"vote for {stored.vote}" if stored.vote >= 0 else "no vote"
        leader = f"leader {stored.leader}" if stored.leader >= 0 else "no leader"
        stored_text = f"stored epoch {stored.epoch}, {leader}, {vote}"
    return (
        f"{node}:",
        role,
        stored_text,
        f"log end {describe.position(log.end, log.last[0])}",
        f"durable to {log.durable_end}",
        describe.high_watermark(log.high_watermark),
    )
