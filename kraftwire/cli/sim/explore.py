"""`kraftwire sim explore`: clusters in which anything may happen next.

Owns the command's arguments and output; what runs is in `kraftwire.sim.untimed`.
"""

from __future__ import annotations

import click

from kraftwire.cli.sim.report import CONTEXT, SeedOptions, SeedRun, run_by_steps, seed_range_options
from kraftwire.sim.untimed.plan import draw
from kraftwire.sim.untimed.run import Outcome, Totals, describe_path, run_seeds, shrink


@click.command(context_settings=CONTEXT)
@seed_range_options
def explore(options: SeedOptions) -> int:
    """Run clusters in which anything may happen next, and check what must hold.

    There is no time: any message, timer, flush, snapshot or crash may come next, as the seed
    decides. Exit code 1 if an invariant was violated: the shortest path found to the violation is
    on standard error.
    """
    return run_by_steps(SeedRun("kraftwire sim explore", options, run_seeds, _report), Totals())


def _report(outcome: Outcome) -> list[str]:
    return describe_path(*shrink(draw(outcome.seed), outcome.path, outcome.invariant))
