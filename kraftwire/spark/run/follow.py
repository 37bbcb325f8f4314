"""A tail: rounds of a run that each add new data, until it is stopped.

A round is simply a resumed run, so at whatever moment it is killed, the next one leaves the tables
of one run over all inputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from kraftwire.errors import UsageError
from kraftwire.spark.run.options import RunOptions
from kraftwire.spark.run.pipeline import RunOutcome, TailInputs, run
from kraftwire.spark.run.runner import Runner

if TYPE_CHECKING:
    from kraftwire.client.security import Given

# Waits the given seconds, less if it is time to stop; returns whether to continue.
Wait = Callable[[float], bool]


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """When rounds begin.

    Units: seconds. `interval_s` is the time from the start of one round to the next, or longer if a
    round takes longer; with `is_once` there is one round.
    """

    interval_s: float
    wait: Wait
    is_once: bool = False


def tail(
    inputs: Sequence[str],
    options: RunOptions,
    runner: Runner,
    rhythm: RoundSchedule,
    *,
    quorums: Sequence[str] = (),
    security: Given = None,
    warn: Callable[[str], None] = print,
    begin: Callable[[str, int], None] = lambda _name, _size: None,
) -> RunOutcome:
    """Keep the tables of a folder up to date; return the combined result of all rounds.

    A quorum without a leader is reported, and tried again in the next round. Raises: as `run`, and
    for a quorum that refuses access, before the runner begins; UsageError if an input that is not a
    pattern does not exist.
    """
    for name in inputs:
        if not Path(name).exists() and not has_magic(name):
            raise UsageError(f"{name}: no such file or folder")
    if quorums:
        from kraftwire.spark.run.quorum_source import check_access

        check_access(quorums, security)
    warned: set[str] = set()

    def warn_once(text: str) -> None:
        if text not in warned:
            warned.add(text)
            warn(text)

    whole = RunOutcome()
    following = TailInputs(tuple(quorums), security)
    while True:
        began = time.monotonic()
        outcome = run(
            inputs, options, runner,
            resume=True, following=following, warn=warn_once, begin=begin,
        )  # fmt: skip
        _add(whole, outcome)
        for problem in outcome.unreachable:
            warn(problem)
        if rhythm.is_once:
            return whole
        begin("wait", 0)
        if not rhythm.wait(max(0.0, began + rhythm.interval_s - time.monotonic())):
            return whole


def _add(whole: RunOutcome, outcome: RunOutcome) -> None:
    """Add the result of a round to those of the rounds before."""
    whole.rows = outcome.rows
    # A file that is already in the tables is not counted again.
    whole.unbalanced = [*whole.unbalanced, *outcome.unbalanced]
    whole.unread = outcome.unread
    whole.unreachable = outcome.unreachable
    whole.files += outcome.files
    whole.known = outcome.known
    whole.size += outcome.size
    whole.seconds += outcome.seconds
