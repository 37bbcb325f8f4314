"""`kraftwire sim`: whole clusters in virtual time, and what must hold in them.

Owns the commands' arguments and output; what runs is in `kraftwire.sim`.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import click

from kraftwire.cli.output import put, say
from kraftwire.cli.sim.exhaust import exhaust
from kraftwire.cli.sim.explore import controller, explore
from kraftwire.cli.sim.report import (
    SEED_MAX,
    SeedOptions,
    SeedRun,
    seed_range_options,
    table,
)
from kraftwire.errors import UsageError
from kraftwire.sim.coverage import SITUATIONS, missing
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.plan import Plan, draw
from kraftwire.sim.run import TimedOutcome, TimedTotals, describe_plan, run_plan, run_seeds
from kraftwire.sim.shrink import shrink as shrunk
from kraftwire.small_files import read_small_file

_FAILED = 1
_MS_PER_S = 1000


@click.group()
def sim() -> None:
    """Simulate whole clusters and check their safety and liveness.

    \b
      kraftwire sim run --seeds 0-99         clusters under faults
      kraftwire sim shrink 17                the fewest faults that fail seed 17
      kraftwire sim replay plan.json         run a plan that shrink has written
      kraftwire sim explore --seeds 0-999    random walks, without a clock
      kraftwire sim exhaust                  every reachable state of three voters
      kraftwire sim controller --seeds 0-99  brokers under the active controller
    """
    # Recovery logs a warning for every torn log it cuts, and the simulator tears thousands.
    logging.getLogger("kraftwire").setLevel(logging.ERROR)


sim.add_command(explore)
sim.add_command(exhaust)
sim.add_command(controller)


@sim.command()
@seed_range_options
@click.option(
    "--require-coverage",
    type=click.IntRange(1),
    metavar="N",
    help="Fail if any situation was reached less than N times.",
)
def run(options: SeedOptions, require_coverage: int | None) -> int:
    """Run one cluster for each seed of a range.

    Exit code 1 if an invariant was violated or a required situation was not reached; the end of
    each failing cluster's timeline is on standard error.
    """
    totals = TimedTotals()
    seed_run = SeedRun("kraftwire sim run", options, run_seeds, _report)
    seconds = seed_run.add_up(totals, lambda: f"{totals.events:,} events")
    if options.coverage and not options.as_json:
        _print_coverage(totals)
    put(*([json.dumps(totals.to_json())] if options.as_json else _summary(totals, seconds)))
    lacking = _print_missing(totals, require_coverage) if require_coverage is not None else False
    return _FAILED if totals.violations or lacking else 0


def _report(outcome: TimedOutcome) -> list[str]:
    return describe_plan(draw(outcome.seed))


@sim.command()
@click.argument("seed", type=click.IntRange(0, SEED_MAX))
@click.option("--tries", type=click.IntRange(1), default=400, help="Maximum number of runs.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan to this file."
)
def shrink(seed: int, tries: int, out: Path | None) -> int:
    """Reduce a failing seed to a simpler run.

    It has fewer faults and nodes, and is shorter.
    """
    plan = draw(seed)
    if run_plan(plan).violation is None:
        raise UsageError(f"seed {seed} violates nothing")
    best = shrunk(plan, tries, _print_plan)
    for line in describe_plan(best):
        put(line)
    text = json.dumps(best.to_json())
    put(text)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    return _FAILED


@sim.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--lines", type=click.IntRange(1), default=LINES_MAX, help="Maximum lines of the timeline."
)
def replay(plan: Path, lines: int) -> int:
    """Run a plan written by `shrink --out`, and print how it ends."""
    try:
        again = Plan.from_json(json.loads(read_small_file(plan)))
    except OSError as error:
        raise UsageError(f"{plan}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{plan} is not a plan: {error}") from error
    lines_shown = describe_plan(again, lines)
    for line in lines_shown:
        put(line)
    return _FAILED if len(lines_shown) > 1 else 0


def _print_coverage(totals: TimedTotals) -> None:
    """Print each situation, its meaning, and how often it was reached."""
    for name, sentence in SITUATIONS.items():
        put(f"{totals.coverage[name]:12,}  {name}: {sentence}")


def _print_missing(totals: TimedTotals, least: int) -> bool:
    """Print the situations that were reached too rarely. Returns whether there were any."""
    found = missing(totals.coverage, least)
    for name in found:
        count = totals.coverage[name]
        text = f"reached {count:,} times, not {least:,}: {name} ({SITUATIONS[name]})"
        say(f"kraftwire: {text}")
    return bool(found)


def _summary(totals: TimedTotals, seconds: float) -> list[str]:
    rows = [
        ("clusters", f"{totals.clusters:,}"),
        ("virtual time", f"{totals.virtual_seconds / 3600:,.2f} h"),
        ("events", f"{totals.events:,} ({totals.events / max(seconds, 1e-9):,.0f} per second)"),
        ("elections", f"{totals.elections:,}"),
        ("commits", f"{totals.commits:,}"),
        ("crashes", f"{totals.crashes:,}"),
        ("faults", f"{sum(totals.faults.values()):,} of {len(totals.faults)} kinds"),
        ("violations", f"{totals.violations:,}"),
    ]
    return table(rows)


def _print_plan(plan: Plan) -> None:
    size = f"{plan.nodes} nodes, {plan.length_ms / _MS_PER_S:g} s, {len(plan.faults)} faults"
    say(f"still fails: {size}")
