"""Runs the timeless clusters of seeds, replays paths, and sums up the results."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from kraftwire.sim.timeless.choose import Chooser
from kraftwire.sim.timeless.plan import KINDS, Plan, draw
from kraftwire.sim.timeless.trials import check_calm
from kraftwire.sim.timeless.world import Happening, World
from kraftwire.sim.violation import BUGS, Violation, as_violation

__all__ = ["Outcome", "Totals", "explore", "play", "run_seed", "run_seeds"]

CALM: Happening = ("calm",)


@dataclass(slots=True)
class Outcome:
    """The result of one cluster. `invariant` is empty if none was violated; `path` is what
    happened, up to the violation."""

    seed: int
    steps: int = 0
    elections: int = 0
    commits: int = 0
    marks: Counter[str] = field(default_factory=Counter)
    path: list[Happening] = field(default_factory=list)
    invariant: str = ""
    detail: str = ""
    odds: tuple[str, ...] = ()


@dataclass(slots=True)
class Totals:
    """Totals over clusters."""

    clusters: int = 0
    steps: int = 0
    elections: int = 0
    commits: int = 0
    violations: int = 0
    marks: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count a cluster."""
        self.clusters += 1
        self.steps += outcome.steps
        self.elections += outcome.elections
        self.commits += outcome.commits
        self.violations += bool(outcome.invariant)
        self.marks.update(outcome.marks)

    def to_json(self) -> dict[str, Any]:
        """Return the object in the last line of `kraftwire sim timeless --json`."""
        return {
            "clusters": self.clusters,
            "steps": self.steps,
            "elections": self.elections,
            "commits": self.commits,
            "violations": self.violations,
        }


def explore(plan: Plan) -> Outcome:
    """Let as many random events happen as the plan says, then let the cluster calm down."""
    world = World(plan)
    chooser = Chooser(plan, world)

    def happen() -> None:
        world.begin()
        for _ in range(2 * plan.steps):
            what = chooser.next() if len(world.history) < plan.steps else None
            if what is not None:
                world.happen(*what)
        if plan.seed % 2:
            _calm(world)

    return _outcome(world, happen)


def play(
    plan: Plan,
    path: Sequence[Happening],
    world: World | None = None,
    about: Callable[[Happening], None] = lambda _: None,
) -> Outcome:
    """Replay a path; events that are not possible are skipped.

    The path of the outcome ends with the violation. `about` is called before each event.
    """
    world = world or World(plan)

    def happen() -> None:
        world.begin()
        for what in path:
            about(what)
            if what == CALM:
                _calm(world)
            else:
                world.happen(*what)

    return _outcome(world, happen)


def _calm(world: World) -> None:
    """Let a cluster calm down. Raises: Violation.

    The path to a safety violation keeps every event of the calm phase; for a liveness violation the
    calm phase is one event.
    """
    begin = len(world.history)
    try:
        check_calm(world)
    except Violation as violation:
        if violation.invariant.startswith("L"):
            world.history[begin:] = [CALM]
        raise


def _outcome(world: World, happen: Callable[[], None]) -> Outcome:
    outcome = Outcome(world.plan.seed, path=world.history)
    # A cluster becomes garbage only when it ends: collecting sooner finds nothing.
    gc.disable()
    try:
        happen()
    except BUGS as error:
        failed = as_violation(error)
        outcome.invariant, outcome.detail = failed.invariant, failed.detail
        outcome.odds = failed.odds
    finally:
        gc.enable()
    outcome.steps = sum(world.marks.get(kind, 0) for kind in KINDS)
    outcome.elections = len(world.book.history.leaders)
    outcome.commits = world.book.history.frontier
    outcome.marks = Counter(world.marks)
    return outcome


def run_seed(seed: int) -> Outcome:
    """Run the cluster of a seed."""
    outcome = explore(draw(seed))
    if not outcome.invariant:
        outcome.path = []
    return outcome


def run_seeds(seeds: Iterable[int], jobs: int = 1) -> Generator[Outcome, None, None]:
    """Run many seeds. Order: that of the seeds, whatever the number of jobs."""
    if jobs <= 1:
        yield from map(run_seed, seeds)
        return
    # A forked child has all modules already; nothing here has threads.
    with get_context("fork").Pool(jobs) as pool:
        yield from pool.imap(run_seed, seeds, chunksize=32)
