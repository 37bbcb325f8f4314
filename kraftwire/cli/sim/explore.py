"""`kraftwire sim explore`: random walks without a clock.

Owns the command's arguments and output; what runs is in `kraftwire.sim.untimed`.
"""

from __future__ import annotations

import click

from kraftwire.cli.sim.report import SeedOptions, SeedRun, run_by_steps, seed_range_options
from kraftwire.sim.untimed.plan import draw
from kraftwire.sim.untimed.run import WalkOutcome, WalkTotals, describe_path, run_seeds, shrink


@click.command()
@seed_range_options
def explore(options: SeedOptions) -> int:
    """Walk through states of clusters at random and check them.

    There is no clock. Each seed decides which message, timer, flush, snapshot, crash or operator's
    request comes next. Exit code 1 if an invariant was violated: the shortest path found to the
    violation is on standard error.
    """
    return run_by_steps(SeedRun("kraftwire sim explore", options, run_seeds, _report), WalkTotals())


def _report(outcome: WalkOutcome) -> list[str]:
    return describe_path(*shrink(draw(outcome.seed), outcome.path, outcome.invariant))
