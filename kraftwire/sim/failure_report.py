"""Describes how a plan fails: what happened, what contradicts, and what should have held."""

from __future__ import annotations

from kraftwire.sim.cluster_state import disagreement, node_states
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.failure_summary import is_of_elections, nodes_named, report_lines
from kraftwire.sim.plan import Plan
from kraftwire.sim.run import run_plan
from kraftwire.sim.timeline import Timeline


def story(plan: Plan, lines: int = LINES_MAX) -> list[str]:
    """Run a plan and describe how it ends.

    At most `lines` lines of timeline, then what broke and how the nodes stand. One line if
    the plan violates nothing.
    """
    timeline = Timeline(lines)
    outcome = run_plan(plan, timeline)
    if not outcome.invariant:
        return [f"seed {plan.seed}: nothing is violated in {outcome.virtual_seconds:.0f} s"]
    named = nodes_named((outcome.detail, *outcome.evidence))
    involved = frozenset(node for node in (*named, timeline.last) if 0 < node <= plan.nodes)
    nodes: list[str] = []
    evidence = list(outcome.evidence)
    # Before any node has taken a step there is nothing to show.
    if timeline.cluster is not None and timeline.last >= 0:
        nodes = node_states(timeline.cluster, involved)
        by_votes = is_of_elections(outcome.invariant)
        if by_votes or not evidence:
            evidence += disagreement(timeline.cluster, involved, is_of_elections=by_votes)
    title = f"seed {plan.seed}, {_size(plan)}: fails after {outcome.virtual_seconds:.3f} s"
    end = report_lines(title, outcome.invariant, outcome.detail, evidence, nodes)
    return [*timeline.select(involved), *end]


def _size(plan: Plan) -> str:
    """Describe a plan in a few words."""
    counts = [(plan.voters, "voter"), (plan.observers, "observer"), (len(plan.faults), "fault")]
    sizes = [f"{count} {noun if count == 1 else noun + 's'}" for count, noun in counts if count]
    return ", ".join(sizes)
