"""The options that commands of `kraftwire sim` share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

SEED_MAX = 2**63 - 1
CONTEXT = {"help_option_names": ["-h", "--help"]}

_SEEDS = re.compile(r"(\d{1,19})-(\d{1,19})")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _seeds(context: click.Context, parameter: click.Parameter, value: str) -> range:
    match = _SEEDS.fullmatch(value)
    low, high = (int(match[1]), int(match[2])) if match else (0, -1)
    if not low <= high <= SEED_MAX:
        problem = f"{value!r} is not A-B with 0 <= A <= B < 2^63"
        raise click.BadParameter(problem, context, parameter)
    return range(low, high + 1)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines for programs.")
within_option = click.option(
    "--within", type=click.FloatRange(0), help="Stop after this many seconds."
)


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
