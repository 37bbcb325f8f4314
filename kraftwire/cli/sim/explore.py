"""`kraftwire sim explore`: clusters in which anything may happen next.

Owns the command's arguments and output; what runs is in `kraftwire.sim.untimed`.
"""

from __future__ import annotations

import click

from kraftwire.cli.sim.report import CONTEXT, SeedRun, run_by_steps, seed_range_options
from kraftwire.sim.untimed.failure_report import describe_failure
from kraftwire.sim.untimed.plan import draw
from kraftwire.sim.untimed.run import Outcome, Totals, run_seeds, shrink


@click.command(context_settings=CONTEXT)
@seed_range_options
def explore(seeds: range, jobs: int, as_json: bool, coverage: bool, within: float | None) -> int:
    """Run clusters in which anything may happen next, and check what must hold.

    There is no time: any message, timer, flush, snapshot or crash may come next, as the seed
    decides. Exit code 1 if an invariant was violated: the shortest path found to the violation is
    on standard error.
    """
    run = SeedRun(
        command="kraftwire sim explore",
        seeds=seeds,
        as_json=as_json,
        within=within,
        report=_report,
    )
    outcomes = run_seeds(seeds, min(jobs, len(seeds)))
    return run_by_steps(run, outcomes, Totals(), coverage=coverage)


def _report(outcome: Outcome) -> list[str]:
    return describe_failure(*shrink(draw(outcome.seed), outcome.path, outcome.invariant))
