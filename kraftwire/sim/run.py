"""Runs the clusters of seeds and sums up the results."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

from kraftwire.sim import seeds as sim_seeds
from kraftwire.sim.checks.liveness import check_liveness
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.coverage import RARE, SITUATIONS
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.failure_report import describe_failure
from kraftwire.sim.plan import Plan, draw
from kraftwire.sim.recovery import RecoveredCluster
from kraftwire.sim.timeline import Timeline

# A cluster takes a quarter of a second.
_CHUNK = 4

_NETWORK_FAULTS = ("dropped", "duplicated", "delayed", "connection reset", "slow flush")


@dataclass(slots=True)
class TimedOutcome(sim_seeds.ClusterOutcome):
    """The result of one cluster."""

    virtual_seconds: float = 0.0
    events: int = 0
    elections: int = 0
    crashes: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    trace_hash: str = ""


@dataclass(slots=True)
class TimedTotals(sim_seeds.ClusterTotals):
    """Totals over clusters. Units: `virtual_seconds` is in the clusters' virtual time."""

    virtual_seconds: float = 0.0
    events: int = 0
    elections: int = 0
    crashes: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Return the object in the last line of `kraftwire sim run --json`."""
        return {
            "clusters": self.clusters,
            "virtualSeconds": round(self.virtual_seconds, 3),
            "events": self.events,
            "elections": self.elections,
            "commits": self.commits,
            "crashes": self.crashes,
            "faults": dict(sorted(self.faults.items())),
            "violations": self.violations,
            "coverage": {
                name: self.coverage[name] for name in (*SITUATIONS, *RARE) if self.coverage[name]
            },
        }


def run_seed(seed: int) -> TimedOutcome:
    """Run the cluster of a seed."""
    outcome = run_plan(draw(seed))
    gc.collect()
    return outcome


def run_plan(plan: Plan) -> TimedOutcome:
    """Run the cluster of a plan."""
    return _run(Cluster(plan))


def describe_plan(plan: Plan, lines: int = LINES_MAX) -> list[str]:
    """Run a plan and describe how it ends, with so many lines of what happened at most; in one line
    if it violates nothing."""
    timeline = Timeline(lines)
    cluster = Cluster(plan, timeline)
    outcome = _run(cluster)
    if outcome.violation is None:
        return [f"seed {plan.seed}: nothing is violated in {outcome.virtual_seconds:.0f} s"]
    counts = [(plan.voters, "voter"), (plan.observers, "observer"), (len(plan.faults), "fault")]
    sizes = [f"{count} {noun if count == 1 else noun + 's'}" for count, noun in counts if count]
    size = ", ".join(sizes)
    title = f"seed {plan.seed}, {size}: fails after {outcome.virtual_seconds:.3f} s"
    running = [one.process for one in cluster.machines.values() if one.process is not None]
    cores = {one.id: one.core for one in running}
    return describe_failure(title, outcome.violation, timeline, cluster.checkers, cores)


def _run(cluster: Cluster) -> TimedOutcome:
    """Run a cluster through its faults and the time after them."""

    def run() -> None:
        cluster.run()
        cluster.check_end(is_whole=check_liveness(RecoveredCluster(cluster)))

    outcome = TimedOutcome(cluster.plan.seed)
    outcome.run(run)
    outcome.virtual_seconds = cluster.queue.now / 1e6
    outcome.events = cluster.events
    outcome.elections = cluster.elections
    outcome.commits = cluster.acknowledged
    outcome.crashes = cluster.crashes
    outcome.coverage = cluster.coverage.counts
    outcome.faults = cluster.nemesis.counts.copy()
    for name in _NETWORK_FAULTS:
        if count := cluster.coverage.counts[name]:
            outcome.faults[name] = count
    outcome.trace_hash = cluster.trace_hash()
    return outcome


def run_seeds(seeds: Iterable[int], jobs: int = 1) -> Generator[TimedOutcome, None, None]:
    """Run many seeds. Order: that of the seeds, whatever the number of jobs."""
    return sim_seeds.in_order(run_seed, seeds, jobs, _CHUNK)
