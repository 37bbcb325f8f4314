"""Runs mutants: each in a process of its own, against the ring that must kill it."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from kraftwire.sim.timeless.plan import draw
from kraftwire.sim.timeless.run import explore
from tests.history.putting_back import put_back
from tests.mutants.mutant import TIMELESS, Mutant

__all__ = ["Verdict", "baseline", "run", "timeless"]

# CPU seconds that the timeless ring gets for one mutant.
BUDGET_S = 40.0

_TESTS_FAILED = 1


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant. `by` says what noticed it, empty if nothing did."""

    name: str
    ring: str
    by: str
    cpu_s: float


def timeless(budget_s: float = BUDGET_S) -> str:
    """The invariant that the timeless ring finds broken, with the seed; empty if it finds none."""
    begin = time.process_time()
    seed = 0
    while time.process_time() - begin < budget_s:
        outcome = explore(draw(seed))
        if outcome.invariant:
            return f"{outcome.invariant} at seed {seed}"
        seed += 1
    return ""


def _pytest(ring: str) -> str:
    """The test that fails first; empty if all pass."""
    failed: list[str] = []

    class _Listener:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid.rpartition("/")[2])

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                failed.append(f"collection of {report.nodeid}")

    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        # What is imported already cannot be rewritten for better messages, and none are read here.
        options = ["-x", "-q", "--assert=plain", "-p", "no:xdist"]
        code = pytest.main([*options, *ring.split()], [_Listener()])
    if code == 0:
        return ""
    return failed[0] if failed else f"pytest ends with {int(code)}"


def _try(ring: str) -> str:
    return timeless() if ring == TIMELESS else _pytest(ring)


def _in_child(mutant: Mutant) -> Verdict:
    """The process ends after this one mutant, so nothing has to be put right again."""
    put_back(mutant.bug, pytest.MonkeyPatch())
    by = _try(mutant.ring)
    return Verdict(mutant.name, mutant.ring, by, time.process_time())


def _quietly(ring: str) -> tuple[str, str]:
    return ring, "" if ring == TIMELESS else _pytest(ring)


def run(mutants: Iterable[Mutant], jobs: int) -> Iterator[Verdict]:
    """Try mutants. Order: as they end."""
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(_in_child, mutants, chunksize=1)


def baseline(mutants: Iterable[Mutant], jobs: int) -> dict[str, str]:
    """The rings that fail without any mutant, with what failed: they prove nothing."""
    rings = sorted({mutant.ring for mutant in mutants})
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        return {ring: by for ring, by in pool.imap_unordered(_quietly, rings, chunksize=1) if by}


def summary(verdicts: list[Verdict], total: int, seconds: float) -> str:
    """The figures, as one line of JSON."""
    killed = [one for one in verdicts if one.by]
    rings: dict[str, int] = {}
    for one in killed:
        ring = one.ring if one.ring == TIMELESS else "tests"
        rings[ring] = rings.get(ring, 0) + 1
    return json.dumps(
        {
            "mutants": total,
            "tried": len(verdicts),
            "killed": len(killed),
            "survived": [one.name for one in verdicts if not one.by],
            "by": rings,
            "seconds": round(seconds, 1),
        }
    )
