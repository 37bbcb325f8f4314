"""What the commands of `kraftwire sim` share: options, progress, violations, the final table."""

from __future__ import annotations

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
from kraftwire.sim.failure_summary import summary_lines
from kraftwire.sim.invariants import meaning
from kraftwire.sim.seeds import Outcome, StepTotals, Totals

SEED_MAX = 2**63 - 1
CONTEXT = {"help_option_names": ["-h", "--help"]}

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


def seed_range_options(command: _Command) -> _Command:
    """Add the options of a command that runs one cluster for each seed of a range."""
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


_O = TypeVar("_O", bound=Outcome)


@dataclass(frozen=True, kw_only=True)
class SeedRun(Generic[_O]):
    """A run over a range of seeds: `command` with `--seeds A-A` runs one of them again."""

    command: str
    seeds: range
    as_json: bool
    within: float | None
    report: Callable[[_O], list[str]]

    def add_up(
        self,
        outcomes: Generator[_O, None, None],
        totals: Totals,
        progress_text: Callable[[], str],
    ) -> float:
        """Add up the outcomes and report each violation. Returns the seconds that it took."""
        count, begin = len(self.seeds), time.monotonic()
        show = progress(count, "clusters")
        with closing(outcomes):
            for outcome in outcomes:
                totals.add(outcome)
                show(totals.clusters, progress_text())
                if outcome.invariant:
                    self._report(outcome, in_full=totals.violations <= _REPORTS_MAX)
                if self.within is not None and time.monotonic() - begin >= self.within:
                    break
        seconds = time.monotonic() - begin
        if totals.clusters < count:
            cut = f"{totals.clusters:,} of {count:,} clusters fitted into {seconds:.0f} s"
            say(f"kraftwire: {cut}")
        return seconds

    def _report(self, outcome: _O, *, in_full: bool) -> None:
        """Print what was violated and the command that reproduces it."""
        seed, violation = outcome.seed, (outcome.invariant, outcome.detail, outcome.evidence)
        if self.as_json:
            put(json.dumps({"seed": seed, **violation_json(*violation)}))
        lines = self.report(outcome) if in_full else [f"seed {seed}", *summary_lines(*violation)]
        say(*lines)
        say(f"{self.command} --seeds {seed}-{seed}")


def run_by_steps(
    run: SeedRun[_O], outcomes: Generator[_O, None, None], totals: StepTotals, *, coverage: bool
) -> int:
    """Run clusters whose length is a number of steps, and print their totals.

    Returns the exit code.
    """
    seconds = run.add_up(outcomes, totals, lambda: f"{totals.steps:,} steps")
    if coverage:
        for name, count in sorted(totals.coverage.items()):
            put(json.dumps({name: count}) if run.as_json else f"{count:12,}  {name}")
    found = totals.to_json()
    if run.as_json:
        put(json.dumps({**found, "seconds": round(seconds, 3)}))
    else:
        rate = f" ({totals.steps / max(seconds, 1e-9):,.0f} per second)"
        rows = [(name, f"{number:,}{rate if name == 'steps' else ''}") for name, number in
                found.items()]
        put(*table(rows))
    return _FAILED if totals.violations else 0


def violation_json(invariant: str, detail: str, evidence: tuple[str, ...]) -> dict[str, Any]:
    """Return a violation as `--json` prints it, after the seed if there is one."""
    return {
        "invariant": invariant,
        "meaning": meaning(invariant),
        "detail": detail,
        "evidence": list(evidence),
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
