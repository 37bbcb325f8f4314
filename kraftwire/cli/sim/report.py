"""What the commands of `kraftwire sim` share: options, progress, violations, the final table."""

from __future__ import annotations

import functools
import json
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import click

from kraftwire.cli.output import put, say, say_over
from kraftwire.sim.failure_report import summary_lines
from kraftwire.sim.invariants import Violation, meaning
from kraftwire.sim.seeds import ClusterOutcome, ClusterTotals

SEED_MAX = 2**63 - 1

_SEEDS = re.compile(r"(\d{1,19})-(\d{1,19})")
_Command = TypeVar("_Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines for programs.")

within_option = click.option(
    "--within", type=click.FloatRange(0), help="Stop after this many seconds."
)
_FAILED = 1
_REPORTS_MAX = 3
_QUIET_S = 1.0
_INTERVAL_S = 0.5


def _seeds(context: click.Context, parameter: click.Parameter, value: str) -> range:
    match = _SEEDS.fullmatch(value)
    low, high = (int(match[1]), int(match[2])) if match else (0, -1)
    if not low <= high <= SEED_MAX:
        problem = f"{value!r} is not A-B with 0 <= A <= B < 2^63"
        raise click.BadParameter(problem, context, parameter)
    return range(low, high + 1)


@dataclass(frozen=True, slots=True)
class SeedOptions:
    """The options of a command that runs one cluster for each seed of a range."""

    seeds: range
    jobs: int
    as_json: bool
    coverage: bool
    within: float | None


def seed_range_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of `SeedOptions`, which is the function's first argument."""

    @functools.wraps(function)
    def command(
        seeds: range,
        jobs: int,
        as_json: bool,
        coverage: bool,
        within: float | None,
        **others: object,
    ) -> int:
        return function(SeedOptions(seeds, jobs, as_json, coverage, within), **others)

    jobs = click.IntRange(1, 256)
    for option in (
        within_option,
        click.option("--coverage", is_flag=True, help="Print how often situations were reached."),
        json_option,
        click.option("--jobs", type=jobs, default=1, help="Processes to use."),
        click.option("--seeds", callback=_seeds, required=True, help="Such as 0-99, inclusive."),
    ):
        command = option(command)
    return command


_O = TypeVar("_O", bound=ClusterOutcome)


@dataclass(frozen=True, slots=True)
class SeedRun(Generic[_O]):
    """A run over a range of seeds: `command` with `--seeds A-A` runs one of them again.

    `run_seeds` runs seeds in so many processes, `report` describes a violation.
    """

    command: str
    options: SeedOptions
    run_seeds: Callable[[range, int], Generator[_O, None, None]]
    report: Callable[[_O], list[str]]

    def add_up(self, totals: ClusterTotals, progress_text: Callable[[], str]) -> float:
        """Add up the outcomes and report each violation. Returns the seconds that it took."""
        seeds, within = self.options.seeds, self.options.within
        count, begin = len(seeds), time.monotonic()
        show = progress(count, "clusters")
        with closing(self.run_seeds(seeds, min(self.options.jobs, count))) as outcomes:
            for outcome in outcomes:
                totals.add(outcome)
                show(totals.clusters, progress_text())
                if outcome.violation is not None:
                    is_in_full = totals.violations <= _REPORTS_MAX
                    self._report(outcome, outcome.violation, is_in_full=is_in_full)
                if within is not None and time.monotonic() - begin >= within:
                    break
        seconds = time.monotonic() - begin
        if totals.clusters < count:
            cut = f"{totals.clusters:,} of {count:,} clusters fitted into {seconds:.0f} s"
            say(f"kraftwire: {cut}")
        return seconds

    def _report(self, outcome: _O, violation: Violation, *, is_in_full: bool) -> None:
        """Print what was violated and the command that reproduces it."""
        seed = outcome.seed
        if self.options.as_json:
            put(json.dumps({"seed": seed, **violation_json(violation)}))
        lines = [f"seed {seed}", *summary_lines(violation)]
        if is_in_full:
            lines = self.report(outcome)
        say(*lines)
        say(f"{self.command} --seeds {seed}-{seed}")


def violation_json(violation: Violation) -> dict[str, Any]:
    """Return a violation as `--json` prints it, after the seed if there is one."""
    return {
        "invariant": violation.invariant,
        "meaning": meaning(violation.invariant),
        "detail": violation.detail,
        "evidence": list(violation.evidence),
    }


def table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Lay out names and values in two columns."""
    return [f"{name:14}{value}" for name, value in rows]


def progress(count: int, unit: str) -> Callable[[int, str], None]:
    """Return a function that shows the progress, on a terminal and only if the run takes a while.

    It is called with the number done and further text.
    """
    if not sys.stderr.isatty():
        return lambda _done, _text: None
    begin = last = time.monotonic()

    def show(done: int, text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if done == count and last > begin:
            say_over("")
        elif now - begin > _QUIET_S and now - last > _INTERVAL_S:
            last = now
            line = f"{done:,} of {count:,} {unit}, {text}"
            say_over(line)

    return show
