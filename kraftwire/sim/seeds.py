"""Clusters of many seeds: how one ends, the sums over all, and the processes that run them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, fields
from multiprocessing import get_context
from typing import TypeVar

from kraftwire.sim.invariants import BUGS, Violation, as_violation


@dataclass(slots=True)
class ClusterOutcome:
    """The result of one cluster."""

    seed: int
    commits: int = 0
    coverage: Counter[str] = field(default_factory=Counter)
    violation: Violation | None = None

    @property
    def invariant(self) -> str:
        """The name of the violated invariant; empty if there is none."""
        return self.violation.invariant if self.violation is not None else ""

    def run(self, cluster: Callable[[], None]) -> None:
        """Run a cluster to its end, or to a violation, which is kept."""
        # A cluster becomes garbage only when it ends: collecting sooner finds nothing.
        gc.disable()
        try:
            cluster()
        except BUGS as error:
            self.violation = as_violation(error)
        finally:
            gc.enable()


@dataclass(slots=True)
class ClusterTotals:
    """Totals over clusters. What subclasses add are sums of what their outcomes have by that name.
    """

    clusters: int = 0
    violations: int = 0
    commits: int = 0
    coverage: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: ClusterOutcome) -> None:
        """Count a cluster."""
        self.clusters += 1
        self.violations += outcome.violation is not None
        for each in fields(self):
            if each.name in ("clusters", "violations"):
                continue
            total, value = getattr(self, each.name), getattr(outcome, each.name)
            if isinstance(total, Counter):
                total.update(value)
            else:
                setattr(self, each.name, total + value)


_O = TypeVar("_O", bound=ClusterOutcome)


def in_order(
    run_seed: Callable[[int], _O], seeds: Iterable[int], jobs: int, chunk: int
) -> Generator[_O, None, None]:
    """Run many seeds, in processes that get so many of them at a time. Order: that of the seeds,
    whatever the number of jobs."""
    # Collections after a cluster need not look at what was there before: modules and classes are
    # seven times as much as a cluster leaves.
    if jobs <= 1:
        gc.freeze()
        try:
            yield from map(run_seed, seeds)
        finally:
            gc.unfreeze()
        return
    # A forked child has all modules already; nothing here has threads.
    with get_context("fork").Pool(jobs, gc.freeze) as pool:
        yield from pool.imap(run_seed, seeds, chunksize=chunk)
