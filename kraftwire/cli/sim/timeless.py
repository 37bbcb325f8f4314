"""`kraftwire sim timeless`: clusters in which anything may happen next.

Owns the command's arguments and output; what runs is in `kraftwire.sim.timeless`.
"""

from __future__ import annotations

import json
import time

import click

from kraftwire.cli.output import put, say
from kraftwire.cli.sim.options import progress, seeds_option, violation_json
from kraftwire.sim.headline import headline
from kraftwire.sim.timeless.plan import draw
from kraftwire.sim.timeless.run import Outcome, Totals, run_seeds
from kraftwire.sim.timeless.shrink import shrink
from kraftwire.sim.timeless.story import story

__all__ = ["timeless"]

_FAILED = 1
_STORIES = 3
_CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.command(context_settings=_CONTEXT)
@seeds_option
@click.option("--jobs", type=click.IntRange(1, 256), default=1, help="Processes to use.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines for programs.")
@click.option("--marks", is_flag=True, help="Print which situations were reached, how often.")
@click.option("--within", type=click.FloatRange(0), help="Stop after so many seconds.")
def timeless(seeds: range, jobs: int, as_json: bool, marks: bool, within: float | None) -> int:
    """Let anything happen next, as a seed has it, and check what must hold.

    Any message, timer, flush, snapshot or crash may come next; there is no time. Exit code 1 if an
    invariant was violated: the story of the shortest path found is on standard error.
    """
    totals, begin = Totals(), time.monotonic()
    shown = progress(len(seeds), "clusters")
    outcomes = run_seeds(seeds, min(jobs, len(seeds)))
    for outcome in outcomes:
        totals.add(outcome)
        shown(totals.clusters, f"{totals.steps:,} steps")
        if outcome.invariant:
            _report(outcome, as_json=as_json, in_full=totals.violations <= _STORIES)
        if within is not None and time.monotonic() - begin >= within:
            break
    outcomes.close()
    if totals.clusters < len(seeds):
        fitted = f"{totals.clusters:,} of {len(seeds):,} clusters fitted"
        say(f"kraftwire: {fitted} into {within:g} s")
    if marks:
        for name, count in sorted(totals.marks.items()):
            put(json.dumps({name: count}) if as_json else f"{count:12,}  {name}")
    _sum_up(totals, time.monotonic() - begin, as_json=as_json)
    return _FAILED if totals.violations else 0


def _report(outcome: Outcome, *, as_json: bool, in_full: bool) -> None:
    """Say what broke, how it comes to it, and how to see it again."""
    seed, invariant = outcome.seed, outcome.invariant
    if as_json:
        row = violation_json(invariant, outcome.detail, outcome.odds)
        put(json.dumps({"seed": seed, **row}))
    if in_full:
        lines = story(*shrink(draw(seed), outcome.path, invariant))
    else:
        lines = [f"seed {seed}", *headline(invariant, outcome.detail, outcome.odds)]
    for line in lines:
        say(line)
    say(f"kraftwire sim timeless --seeds {seed}-{seed}")


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
    put(*(f"{name:14}{value}" for name, value in rows))
