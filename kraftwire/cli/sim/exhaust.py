"""`kraftwire sim exhaust`: every cluster within bounds.

Owns the command's arguments and output; what runs is in `kraftwire.sim.exhaust`.
"""

from __future__ import annotations

import json
import re

import click

from kraftwire.cli.output import put, say
from kraftwire.cli.sim.report import (
    json_option,
    progress,
    table,
    violation_json,
    within_option,
)
from kraftwire.errors import UsageError
from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.failure_report import describe_path, replay
from kraftwire.sim.exhaust.search import Found, search

_FAILED = 1
_STATES = 1_000_000
_PATH = re.compile(r"\d{1,5}(\.\d{1,5})*")


def _choices(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not _PATH.fullmatch(value):
        problem = f"{value!r} is not a path: numbers separated by dots"
        raise click.BadParameter(problem, context, parameter)
    return tuple(map(int, value.split(".")))


@click.command()
@click.option("--voters", type=click.IntRange(1, 5), default=3, help="Replicas (3).")
@click.option("--elections", type=click.IntRange(1, 9), default=2, help="Epochs (2).")
@click.option("--restarts", type=click.IntRange(0, 9), default=1, help="Crashes (1).")
@click.option("--values", type=click.IntRange(0, 9), default=2, help="Records appended (2).")
@click.option("--changes", type=click.IntRange(0, 9), default=1, help="Voters removed (1).")
@click.option("--losses", type=click.IntRange(0, 9), default=0, help="Requests that fail (0).")
@click.option("--copies", type=click.IntRange(0, 9), default=0, help="Requests arriving twice (0).")
@click.option("--asking", type=click.IntRange(1, 5), default=1,
              help="Replicas that ask for pre-votes at a time (1).")  # fmt: skip
@click.option("--fetch-max-bytes", type=click.IntRange(1), default=1,
              help="Bytes in a Fetch answer, at least one batch (1).")  # fmt: skip
@click.option("--states", type=click.IntRange(1), default=_STATES,
              help="Stop after this many states (1000000).")  # fmt: skip
@within_option
@click.option("--path", callback=_choices, help="Replay this path, as printed with a violation.")
@json_option
def exhaust(
    states: int,
    within: float | None,
    path: tuple[int, ...] | None,
    as_json: bool,
    **limits: int,
) -> int:
    """Check every state that a small cluster can reach.

    That is model checking, within bounds. All orders of messages, timers, flushes, crashes and
    appends are tried. Each state is visited once, those with the fewest faults first. Exit code 1
    if an invariant was violated: a path with the fewest faults is on standard error.
    """
    bounds = Bounds(**limits)
    if path is not None:
        return _print_failure(bounds, path)
    shown = progress(states, "states")
    found = search(
        bounds, states, within, shown=lambda one: shown(one.states, f"{one.depth} steps deep")
    )
    violation = found.violation
    if violation is not None:
        if as_json:
            put(json.dumps(violation_json(violation)))
        say(*describe_path(bounds, found.path))
    put(*([json.dumps(found.to_json())] if as_json else _summary(found)))
    return _FAILED if violation is not None else 0


def _print_failure(bounds: Bounds, path: tuple[int, ...]) -> int:
    try:
        is_violated = replay(bounds, path) is not None
    except IndexError as error:
        raise UsageError(f"not a path within these bounds: {error}") from error
    put(*describe_path(bounds, path))
    return _FAILED if is_violated else 0


def _summary(found: Found) -> list[str]:
    rate = found.states / max(found.seconds, 1e-9)
    if found.is_exhausted:
        end = "exhausted: all states within the bounds"
    elif found.violation is not None:
        end = "stopped at a violation"
    else:
        end = f"stopped at {found.states:,} states; all with {found.accidents} accidents were seen"
    rows = [
        ("states", f"{found.states:,} ({rate:,.0f} per second)"),
        ("transitions", f"{found.transitions:,}"),
        ("local states", f"{found.local_states:,}, with {found.local_steps:,} steps of the core"),
        ("depth", f"{found.depth:,} steps"),
        ("violations", f"{int(found.violation is not None):,}"),
        ("end", end),
    ]
    return table(rows)
