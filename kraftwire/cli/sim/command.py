"""`kraftwire sim`: whole clusters on virtual time, and what must hold in them.

Owns the commands' arguments and output; what runs is in `kraftwire.sim`.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import click

from kraftwire.cli.output import put, say
from kraftwire.cli.sim.exhaust import exhaust
from kraftwire.cli.sim.options import SEED_MAX, progress, seeds_option, violation_json
from kraftwire.cli.sim.timeless import timeless
from kraftwire.errors import UsageError
from kraftwire.sim.excerpt import LINES_MAX
from kraftwire.sim.headline import headline
from kraftwire.sim.marks import SITUATIONS, missing
from kraftwire.sim.plan import Plan, draw
from kraftwire.sim.run import Outcome, Totals, run_plan, run_seeds
from kraftwire.sim.shrink import shrink as shrunk
from kraftwire.sim.story import story

__all__ = ["sim"]

_FAILED = 1
_TIMELINES = 3
_MS_PER_S = 1000

_CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=_CONTEXT)
def sim() -> None:
    """Simulate whole clusters on virtual time, and check what must hold in them.

    \b
      kraftwire sim run --seeds 0-99     a hundred clusters
      kraftwire sim shrink 17            the smallest trouble that still breaks seed 17
      kraftwire sim replay plan.json     run what shrink has written
      kraftwire sim timeless --seeds 0-999   anything may happen next: no time
      kraftwire sim exhaust              everything that can happen to three voters
    """
    # Recovery reports what it cuts off: that is what is tried here, thousands of times.
    logging.getLogger("kraftwire").setLevel(logging.ERROR)


sim.add_command(timeless)
sim.add_command(exhaust)


@sim.command(context_settings=_CONTEXT)
@seeds_option
@click.option("--jobs", type=click.IntRange(1, 256), default=1, help="Processes to use.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines for programs.")
@click.option("--marks", is_flag=True, help="Print which situations were reached, how often.")
@click.option(
    "--require-marks",
    type=click.IntRange(1),
    metavar="N",
    help="Fail if any situation was reached less than N times.",
)
@click.option("--within", type=click.FloatRange(0), help="Stop after so many seconds.")
def run(
    seeds: range,
    jobs: int,
    as_json: bool,
    marks: bool,
    require_marks: int | None,
    within: float | None,
) -> int:
    """Run the clusters of a range of seeds.

    Exit code 1 if an invariant was violated, or a required situation was not reached; how the
    failing cluster ended is on standard error.
    """
    totals = Totals()
    begin = time.monotonic()
    shown = progress(len(seeds), "clusters")
    outcomes = run_seeds(seeds, min(jobs, len(seeds)))
    for outcome in outcomes:
        totals.add(outcome)
        shown(totals.clusters, f"{totals.events:,} events")
        if outcome.invariant:
            _report(outcome, as_json=as_json, in_full=totals.violations <= _TIMELINES)
        if within is not None and time.monotonic() - begin >= within:
            break
    outcomes.close()
    wall = time.monotonic() - begin
    if totals.clusters < len(seeds):
        fitted = f"{totals.clusters:,} of {len(seeds):,} clusters fitted into {wall:.0f} s"
        say(f"kraftwire: {fitted}")
    if marks and not as_json:
        _print_marks(totals)
    put(*([json.dumps(totals.to_json())] if as_json else _summary(totals, wall)))
    lacking = _tell_missing(totals, require_marks) if require_marks is not None else False
    return _FAILED if totals.violations or lacking else 0


@sim.command(context_settings=_CONTEXT)
@click.argument("seed", type=click.IntRange(0, SEED_MAX))
@click.option("--tries", type=click.IntRange(1), default=400, help="Runs to spend at most.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Keep the plan here.")
def shrink(seed: int, tries: int, out: Path | None) -> int:
    """Reduce a failing seed: drop faults, shorten, take fewer nodes."""
    plan = draw(seed)
    if not run_plan(plan).invariant:
        raise UsageError(f"seed {seed} violates nothing")
    best = shrunk(plan, tries, _tell)
    for line in story(best):
        put(line)
    text = json.dumps(best.to_json())
    put(text)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    return _FAILED


@sim.command(context_settings=_CONTEXT)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--lines", type=click.IntRange(1), default=LINES_MAX, help="Lines of the timeline at most."
)
def replay(plan: Path, lines: int) -> int:
    """Run a plan that `shrink --out` has written, and print how it ends."""
    try:
        again = Plan.from_json(json.loads(plan.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{plan} is no plan: {error}") from error
    told = story(again, lines)
    for line in told:
        put(line)
    return _FAILED if len(told) > 1 else 0


def _report(outcome: Outcome, *, as_json: bool, in_full: bool) -> None:
    """Say what broke and how to see it again."""
    if as_json:
        row = violation_json(outcome.invariant, outcome.detail, outcome.odds)
        put(json.dumps({"seed": outcome.seed, **row}))
    if in_full:
        lines = story(draw(outcome.seed))
    else:
        told = headline(outcome.invariant, outcome.detail, outcome.odds)
        lines = [f"seed {outcome.seed}", *told]
    for line in lines:
        say(line)
    say(f"kraftwire sim run --seeds {outcome.seed}-{outcome.seed}")


def _print_marks(totals: Totals) -> None:
    """What was reached, and what it means."""
    for name, sentence in SITUATIONS.items():
        put(f"{totals.marks[name]:12,}  {name}: {sentence}")


def _tell_missing(totals: Totals, least: int) -> bool:
    """Say which situations were reached too seldom; returns whether any was."""
    found = missing(totals.marks, least)
    for name in found:
        count = totals.marks[name]
        text = f"reached {count:,} times, not {least:,}: {name} ({SITUATIONS[name]})"
        say(f"kraftwire: {text}")
    return bool(found)


def _summary(totals: Totals, wall: float) -> list[str]:
    rows = [
        ("clusters", f"{totals.clusters:,}"),
        ("virtual time", f"{totals.virtual_seconds / 3600:,.2f} h"),
        ("events", f"{totals.events:,} ({totals.events / max(wall, 1e-9):,.0f} per second)"),
        ("elections", f"{totals.elections:,}"),
        ("commits", f"{totals.commits:,}"),
        ("crashes", f"{totals.crashes:,}"),
        ("faults", f"{sum(totals.faults.values()):,} of {len(totals.faults)} kinds"),
        ("violations", f"{totals.violations:,}"),
    ]
    return [f"{name:14}{value}" for name, value in rows]


def _tell(plan: Plan) -> None:
    size = f"{plan.nodes} nodes, {plan.length_ms / _MS_PER_S:g} s, {len(plan.faults)} faults"
    say(f"still fails: {size}")
