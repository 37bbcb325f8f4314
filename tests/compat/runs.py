"""Runs of a suite: what its tests result in, and which of them differ from the list."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.compat.expected import differing
from tests.compat.suite import Results, Suite

# More than that are no matter of a busy machine.
_REPEATED_MAX = 10


@dataclass(slots=True)
class Run:
    """What came of a run.

    Tests with another result than the list's run once more, alone: `unsteady` are right then,
    `wrong` says what is the matter with the others. Unit of `seconds`: without these.
    """

    results: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    unsteady: list[str] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)

    def add(self, other: Run) -> None:
        """Add what came of other tests."""
        self.results |= other.results
        self.seconds += other.seconds
        self.unsteady += other.unsteady
        self.wrong |= other.wrong


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs a suite against a server; files go into the folder. `wanted` is the suite's list."""

    suite: Suite
    bootstrap: str
    wanted: Results
    folder: Path

    def run(self, tests: Sequence[str] = ()) -> Run:
        """Run these tests, all if there are none."""
        began = time.monotonic()
        results = self._run(tests)
        run = Run(dict(results), time.monotonic() - began)
        run.wrong = differing(self.wanted, results, tests)
        if len(run.wrong) <= _REPEATED_MAX:
            for test in list(run.wrong):
                if not differing(self.wanted, self._run([test]), [test]):
                    run.unsteady.append(test)
                    del run.wrong[test]
        return run

    def run_within(self, tests: Sequence[str], seconds: float) -> Run:
        """Run one test after the other; none begins after so many seconds."""
        whole = Run()
        end = time.monotonic() + seconds
        for test in tests:
            if time.monotonic() >= end:
                break
            if test not in whole.results:
                whole.add(self.run([test]))
        return whole

    def _run(self, tests: Sequence[str]) -> Results:
        return self.suite.run(self.bootstrap, tests, self.folder)
