"""What the commands of `kraftwire sim` share: seeds, progress, a violation as JSON."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable

import click

from kraftwire.cli.output import say_over
from kraftwire.sim.invariants import meaning

__all__ = ["SEED_MAX", "progress", "seeds_option", "violation_json"]

SEED_MAX = 2**63 - 1

_SEEDS = re.compile(r"(\d{1,19})-(\d{1,19})")
_QUIET_S = 1.0
_INTERVAL_S = 0.5


def _seeds(context: click.Context, parameter: click.Parameter, value: str) -> range:
    match = _SEEDS.fullmatch(value)
    low, high = (int(match[1]), int(match[2])) if match else (0, -1)
    if not low <= high <= SEED_MAX:
        problem = f"{value!r} is not A-B with 0 <= A <= B < 2^63"
        raise click.BadParameter(problem, context, parameter)
    return range(low, high + 1)


seeds_option = click.option(
    "--seeds", callback=_seeds, required=True, help="Such as 0-99, inclusive."
)


def violation_json(invariant: str, detail: str, odds: tuple[str, ...]) -> dict[str, object]:
    """A violation as `--json` prints it, after the seed where there is one."""
    return {
        "invariant": invariant,
        "meaning": meaning(invariant),
        "detail": detail,
        "odds": list(odds),
    }


def progress(count: int, unit: str) -> Callable[[int, str], None]:
    """What shows how far a run is, on a terminal and only if it takes a while.

    Called with the number done and further text.
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
