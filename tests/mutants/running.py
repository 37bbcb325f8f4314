"""Runs mutants, each in a separate process, against the ring that must kill it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from types import FrameType

import pytest

from kraftwire.sim.untimed.plan import draw
from kraftwire.sim.untimed.run import explore
from tests.history.putting_back import put_back
from tests.mutants.mutant import UNTIMED, Mutant

# CPU seconds that the random walk gets for one mutant.
BUDGET_S = 40.0

# CPU seconds after which a test that does not end because of a mutant has failed.
ENDLESS_S = 120.0

_TESTS_FAILED = 1

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    `by` says what noticed it, empty if nothing did: `test` as pytest names it, or the random walk
    at `seed`. `problem` says why the attempt proves nothing: the edit no longer applies, or the
    same fails without the mutant too.
    """

    name: str
    ring: str
    by: str = ""
    cpu_s: float = 0.0
    problem: str = ""
    test: str = ""
    seed: int | None = None

    @property
    def is_killed(self) -> bool:
        """Whether the ring fails with this mutant, and only with it."""
        return bool(self.by) and not self.problem


class _Endless(BaseException):
    """A mutant keeps its ring from ending; not caught by `except Exception`."""


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _Endless(f"still running after {seconds:.0f} CPU seconds")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def random_walk(budget_s: float = BUDGET_S) -> tuple[str, int]:
    """What the random walk finds broken, empty if nothing, and the last seed it tried."""
    begin = time.process_time()
    seed = 0
    while True:
        outcome = explore(draw(seed))
        if outcome.violation is not None:
            name, detail = outcome.violation.invariant, outcome.violation.detail
            return f"{name} at seed {seed}{f' ({detail})' if name == 'BUG' else ''}", seed
        if time.process_time() - begin >= budget_s:
            return "", seed
        seed += 1


def _pytest(rings: Sequence[str], *options: str) -> tuple[int, list[str]]:
    """The exit code, and the tests that fail. A test by its file, without parameters."""
    failed: list[str] = []
    paths: dict[str, Path] = {}

    class _Listener:
        def pytest_itemcollected(self, item: pytest.Item) -> None:
            paths[item.nodeid] = item.path

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                path, name = paths[report.nodeid], report.nodeid.partition("::")[2]
                inside = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path
                failed.append(f"{inside}::{name.partition('[')[0]}")

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        # What is imported already cannot be rewritten for better messages, and none are read here.
        fixed = ["-q", "--assert=plain", "-p", "no:xdist", f"--rootdir={_ROOT}", *options]
        # In a fork of a test's process faulthandler would wait for a thread that only that has.
        fixed += ["-p", "no:faulthandler", "-W", "ignore:Unknown config option"]
        code = pytest.main([*fixed, *rings], [_Listener()])
    return int(code), failed


def _by_tests(verdict: Verdict) -> Verdict:
    code, failed = _pytest(verdict.ring.split(), "-x")
    if failed:
        return replace(verdict, by=failed[0], test=failed[0])
    if code:
        return replace(verdict, problem=f"pytest ends with {code}: no such test?")
    return verdict


def _tried(mutant: Mutant) -> Verdict:
    verdict = Verdict(mutant.name, mutant.ring)
    try:
        put_back(mutant.bug, pytest.MonkeyPatch())
    except (AssertionError, AttributeError, ImportError) as error:
        return replace(verdict, problem=f"the edit does not apply: {error}")
    try:
        with _bounded(ENDLESS_S):
            if mutant.ring != UNTIMED:
                return _by_tests(verdict)
            by, seed = random_walk()
            return replace(verdict, by=by, seed=seed)
    except _Endless as endless:
        return replace(verdict, by=str(endless))


def _in_child(mutant: Mutant, until: float) -> Verdict | None:
    """The process ends after this one mutant, so nothing has to be restored."""
    if time.monotonic() >= until:
        return None
    return replace(_tried(mutant), cpu_s=time.process_time())


def run(mutants: Iterable[Mutant], jobs: int, until: float = inf) -> Iterator[Verdict]:
    """Try mutants. Order: as they end. None begins after the monotonic time `until`."""
    attempt = partial(_in_child, until=until)
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        for verdict in pool.imap_unordered(attempt, mutants, chunksize=1):
            if verdict is not None:
                yield verdict


def checked(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The same, except for those whose test or seed fails without a mutant as well."""
    tests = sorted({one.test for one in verdicts if one.test})
    broken: list[str] = []
    if tests:
        # Nothing has been edited here, and a separate process leaves no traces.
        with multiprocessing.get_context("fork").Pool(1) as pool:
            code, broken = pool.apply(_pytest, (tests,))
        if code > _TESTS_FAILED:
            broken = tests
    seeds = {one.seed for one in verdicts if one.by and one.seed is not None}
    found = {seed for seed in sorted(seeds) if explore(draw(seed)).invariant}
    return [
        replace(one, problem="fails without the mutant too")
        if one.test in broken or (one.by and one.seed in found)
        else one
        for one in verdicts
    ]
