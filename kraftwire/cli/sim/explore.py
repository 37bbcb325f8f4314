"""`kraftwire sim explore`: clusters in which anything may happen next.

Owns the command's arguments and output; what runs is in `kraftwire.sim.untimed`.
"""

from __future__ import annotations

import json

import click

from kraftwire.cli.output import put
from kraftwire.cli.sim.report import CONTEXT, SeedRun, seed_range_options, table
from kraftwire.sim.untimed.failure_report import describe_failure
from kraftwire.sim.untimed.plan import draw
from kraftwire.sim.untimed.run import Outcome, Totals, run_seeds, shrink

_FAILED = 1


@click.command(context_settings=CONTEXT)
@seed_range_options
def explore(seeds: range, jobs: int, as_json: bool, coverage: bool, within: float | None) -> int:
    """Run clusters in which anything may happen next, and check what must hold.

    There is no time: any message, timer, flush, snapshot or crash may come next, as the seed
    decides. Exit code 1 if an invariant was violated: the shortest path found to the violation is
    on standard error.
    """
    totals = Totals()
    run = SeedRun(
        command="kraftwire sim explore",
        seeds=seeds,
        as_json=as_json,
        within=within,
        report=_report,
    )
    outcomes = run_seeds(seeds, min(jobs, len(seeds)))
    seconds = run.add_up(outcomes, totals, lambda: f"{totals.steps:,} steps")
    if coverage:
        for name, count in sorted(totals.coverage.items()):
            put(json.dumps({name: count}) if as_json else f"{count:12,}  {name}")
    _sum_up(totals, seconds, as_json=as_json)
    return _FAILED if totals.violations else 0


def _report(outcome: Outcome) -> list[str]:
    return describe_failure(*shrink(draw(outcome.seed), outcome.path, outcome.invariant))


def _sum_up(totals: Totals, wall: float, *, as_json: bool) -> None:
    if as_json:
        put(json.dumps({**totals.to_json(), "seconds": round(wall, 3)}))
        return
    rows = [
        ("clusters", f"{totals.clusters:,}"),
        ("steps", f"{totals.steps:,} ({totals.steps / max(wall, 1e-9):,.0f} per second)"),
        ("elections", f"{totals.elections:,}"),
        ("commits", f"{totals.commits:,}"),
        ("violations", f"{totals.violations:,}"),
    ]
    put(*table(rows))
