"""`kraftwire sim explore` and `kraftwire sim controller`: random walks without a clock.

Owns the commands' arguments and output; what runs is in `kraftwire.sim.untimed` and
`kraftwire.sim.controlled`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import click

from kraftwire.cli.output import put
from kraftwire.cli.sim.report import SeedOptions, SeedRun, seed_range_options, table
from kraftwire.sim.controlled import world as controlled
from kraftwire.sim.untimed import plan
from kraftwire.sim.untimed.run import (
    AnyPlan,
    WalkOutcome,
    WalkTotals,
    describe_path,
    run_seeds,
    shrink,
)

_FAILED = 1


@click.command()
@seed_range_options
def explore(options: SeedOptions) -> int:
    """Walk through states of clusters at random and check them.

    There is no clock. Each seed decides which message, timer, flush, snapshot, crash or operator's
    request comes next. Exit code 1 if an invariant was violated: the shortest path found to the
    violation is on standard error.
    """
    return _walk("kraftwire sim explore", options, plan.draw)


@click.command()
@seed_range_options
def controller(options: SeedOptions) -> int:
    """Simulate what the active controller decides.

    Brokers register, shut down, crash and restart, leaders report in-sync replicas, an
    administrator creates and deletes topics, and controllers fail over. Exit code 1 if an invariant
    was violated: the shortest path found to the violation is on standard error.
    """
    return _walk("kraftwire sim controller", options, controlled.draw)


def _walk(command: str, options: SeedOptions, draw: Callable[[int], AnyPlan]) -> int:
    """Walk through the cluster of each seed, and print the totals. Returns the exit code."""

    def report(outcome: WalkOutcome) -> list[str]:
        return describe_path(*shrink(draw(outcome.seed), outcome.path, outcome.invariant))

    totals = WalkTotals()
    run = SeedRun(command, options, partial(run_seeds, draw_plan=draw), report)
    seconds = run.add_up(totals, lambda: f"{totals.steps:,} steps")
    if options.coverage:
        for name, count in sorted(totals.coverage.items()):
            put(json.dumps({name: count}) if options.as_json else f"{count:12,}  {name}")
    found = totals.to_json()
    if options.as_json:
        put(json.dumps({**found, "seconds": round(seconds, 3)}))
    else:
        rate = f" ({totals.steps / max(seconds, 1e-9):,.0f} per second)"
        rows = [(name, f"{number:,}{rate if name == 'steps' else ''}") for name, number in
                found.items()]
        put(*table(rows))
    return _FAILED if totals.violations else 0
