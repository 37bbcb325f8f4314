"""A tail: rounds of a run that each add what is new, until somebody says stop.

There is no other machinery than that of a run that is resumed, so whatever the moment at which a
round was killed, the next one leaves the tables of one run over all that is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from kraftwire.errors import UsageError
from kraftwire.spark.run.options import RunOptions
from kraftwire.spark.run.pipeline import Following, Outcome, run
from kraftwire.spark.run.runner import Runner

__all__ = ["Rhythm", "tail"]

# Waits so many seconds, less if it is time to end; returns whether to go on.
Wait = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When rounds begin.

    Units: seconds. Shape: `interval_s` from the beginning of one round to that of the next, more
    where a round takes longer; with `is_once` there is one round.
    """

    interval_s: float
    wait: Wait
    is_once: bool = False


def tail(
    inputs: Sequence[str],
    options: RunOptions,
    runner: Runner,
    rhythm: Rhythm,
    *,
    quorums: Sequence[str] = (),
    tell: Callable[[str], None] = print,
    begin: Callable[[str, int], None] = lambda _name, _size: None,
) -> Outcome:
    """Keep the tables of a folder growing; returns what all rounds together have done.

    A quorum without a leader is told of, and asked again in the next round. Raises: as `run`;
    UsageError if an input that is no pattern is not there.
    """
    for name in inputs:
        if not Path(name).exists() and not has_magic(name):
            raise UsageError(f"{name}: no such file or folder")
    told: set[str] = set()

    def tell_once(text: str) -> None:
        if text not in told:
            told.add(text)
            tell(text)

    whole = Outcome()
    following = Following(tuple(quorums))
    while True:
        began = time.monotonic()
        outcome = run(
            inputs, options, runner,
            resume=True, following=following, tell=tell_once, begin=begin,
        )  # fmt: skip
        _add(whole, outcome)
        for problem in outcome.unreachable:
            tell(problem)
        if rhythm.is_once:
            return whole
        begin("wait", 0)
        if not rhythm.wait(max(0.0, began + rhythm.interval_s - time.monotonic())):
            return whole


def _add(whole: Outcome, outcome: Outcome) -> None:
    """Add a round to what the rounds before have done."""
    whole.rows = outcome.rows
    # A file that is in the tables by now is not weighed again.
    whole.unbalanced = [*whole.unbalanced, *outcome.unbalanced]
    whole.unreachable = outcome.unreachable
    whole.files += outcome.files
    whole.known = outcome.known
    whole.size += outcome.size
    whole.seconds += outcome.seconds
