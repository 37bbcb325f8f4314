"""Runs the clusters of seeds, and sums up."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from kraftwire.sim import seeds as sim_seeds
from kraftwire.sim.controlled.world import World
from kraftwire.sim.fewest import fewest

STEPS = 200
_TRIES = 400

# How many seeds a process gets at a time.
_CHUNK = 32


@dataclass(slots=True)
class BrokersOutcome(sim_seeds.ClusterOutcome):
    """The result of one cluster; `history` is what happened last."""

    title: str = ""
    steps: int = 0
    failovers: int = 0
    history: list[str] = field(default_factory=list)


@dataclass(slots=True)
class BrokersTotals(sim_seeds.StepTotals):
    """Totals over clusters."""

    SHOWN: ClassVar[tuple[str, ...]] = ("steps", "commits", "failovers")

    failovers: int = 0


def run_seed(seed: int, kept: Collection[int] = range(STEPS)) -> BrokersOutcome:
    """Run the cluster of a seed; of its steps only those happen that are kept."""
    outcome = BrokersOutcome(seed)
    worlds: list[World] = []

    def run() -> None:
        worlds.append(World(seed))
        for number in range(STEPS):
            outcome.steps += 1
            worlds[0].step(number, is_left_out=number not in kept)
        worlds[0].finish()

    outcome.run(run)
    for world in worlds:
        outcome.title, outcome.coverage = world.title, world.counts
        outcome.commits, outcome.failovers = world.controller.commits, world.controller.failovers
        outcome.history = list(world.history) if outcome.invariant else []
    return outcome


def shrink(outcome: BrokersOutcome, tries: int = _TRIES) -> BrokersOutcome:
    """Return the outcome of the fewest steps found that violate the same invariant."""
    best, tried = outcome, 0

    def still_fails(fewer: list[int]) -> list[int] | None:
        nonlocal best, tried
        tried += 1
        found = run_seed(outcome.seed, frozenset(fewer))
        if found.invariant != outcome.invariant:
            return None
        best = found
        return fewer

    fewest(list(range(outcome.steps)), still_fails, lambda: tried >= tries)
    return best


def run_seeds(seeds: Iterable[int], jobs: int = 1) -> Generator[BrokersOutcome, None, None]:
    """Run many seeds. Order: that of the seeds, whatever the number of jobs."""
    return sim_seeds.in_order(run_seed, seeds, jobs, _CHUNK)
