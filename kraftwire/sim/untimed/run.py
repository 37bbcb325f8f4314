"""Walks through the clusters without time of seeds: replays paths, shortens failing ones, and
reports them. A cluster consists of replicas, or of brokers under the active controller.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kraftwire.sim import seeds as sim_seeds
from kraftwire.sim.controlled.world import BrokerPlan, BrokerWorld, actions
from kraftwire.sim.failure_report import describe_failure
from kraftwire.sim.fewest import fewest
from kraftwire.sim.invariants import Violation
from kraftwire.sim.timeline import Timeline
from kraftwire.sim.untimed.plan import UntimedPlan, draw
from kraftwire.sim.untimed.scheduler import Scheduler
from kraftwire.sim.untimed.stabilization import check_stabilization
from kraftwire.sim.untimed.world import Action, UntimedWorld

# How many seeds a process gets at a time.
_CHUNK = 32

STABILIZATION: Action = ("stabilize",)

AnyPlan = UntimedPlan | BrokerPlan
AnyWorld = UntimedWorld | BrokerWorld


@dataclass(slots=True)
class WalkOutcome(sim_seeds.ClusterOutcome):
    """The result of one cluster; `path` is what happened, up to the violation."""

    steps: int = 0
    elections: int = 0
    path: list[Action] = field(default_factory=list)


@dataclass(slots=True)
class WalkTotals(sim_seeds.ClusterTotals):
    """Totals over clusters."""

    steps: int = 0
    elections: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the object in the last line of a command with ``--json``."""
        shown = ("clusters", "steps", "elections", "commits", "violations")
        return {name: getattr(self, name) for name in shown}


def _world(plan: AnyPlan) -> AnyWorld:
    return UntimedWorld(plan) if isinstance(plan, UntimedPlan) else BrokerWorld(plan)


def explore(plan: AnyPlan) -> WalkOutcome:
    """Let as many random events happen as the plan says, then let a cluster of replicas
    stabilize."""
    world = _world(plan)

    def apply() -> None:
        world.begin()
        if isinstance(world, UntimedWorld):
            _walk(world)
        else:
            for what in actions(world.plan):
                world.apply(*what)

    return _outcome(world, apply)


def _walk(world: UntimedWorld) -> None:
    plan = world.plan
    scheduler = Scheduler(plan, world)
    for _ in range(2 * plan.steps):
        what = scheduler.next() if len(world.history) < plan.steps else None
        if what is not None:
            world.apply(*what)
    if plan.seed % 2:
        _stabilize(world)


def play(
    plan: AnyPlan,
    path: Sequence[Action],
    world: AnyWorld | None = None,
    before: Callable[[Action], None] = lambda _: None,
) -> WalkOutcome:
    """Replay a path; events that are not possible are skipped.

    The path of the outcome ends with the violation. `before` is called before each event.
    """
    played = world or _world(plan)

    def apply() -> None:
        played.begin()
        for what in path:
            before(what)
            if what == STABILIZATION and isinstance(played, UntimedWorld):
                _stabilize(played)
            else:
                played.apply(*what)

    return _outcome(played, apply)


def _stabilize(world: UntimedWorld) -> None:
    """End all faults and check that the cluster stabilizes. Raises: Violation.

    The path to a safety violation keeps every action of that time; for a liveness violation
    it is one action.
    """
    begin = len(world.history)
    try:
        check_stabilization(world)
    except Violation as violation:
        if violation.invariant.startswith("L"):
            world.history[begin:] = [STABILIZATION]
        raise


def _outcome(world: AnyWorld, apply: Callable[[], None]) -> WalkOutcome:
    outcome = WalkOutcome(world.plan.seed, path=world.history)
    outcome.run(apply)
    outcome.steps, outcome.elections = len(world.history), world.elections
    outcome.commits, outcome.coverage = world.commits, world.coverage
    return outcome


def describe_path(plan: AnyPlan, path: Sequence[Action]) -> list[str]:
    """Replay a path and describe how it ends, in one line if it violates nothing."""
    world, timeline = _world(plan), Timeline()

    def head() -> str:
        return f"{len(timeline):3} "

    def note(what: Action) -> None:
        if text := world.describe(what):
            timeline.note(head(), text)

    if isinstance(world, UntimedWorld):
        world.on_step = lambda node: timeline.step(head(), node.id, node.event, node.trace)
    outcome = play(plan, path, world, note)
    if outcome.violation is None:
        return [f"seed {plan.seed}: nothing is violated by {len(path)} actions"]
    title = f"seed {plan.seed}, {plan.title}: fails after {len(outcome.path)} actions"
    if not isinstance(world, UntimedWorld):
        return describe_failure(title, outcome.violation, timeline)
    cores = {node.id: node.core for node in world.nodes.values()}
    return describe_failure(title, outcome.violation, timeline, world.checkers, cores)


def run_seed(seed: int, draw_plan: Callable[[int], AnyPlan] = draw) -> WalkOutcome:
    """Run the cluster of a seed."""
    outcome = explore(draw_plan(seed))
    if outcome.violation is None:
        outcome.path = []
    return outcome


def run_seeds(
    seeds: Iterable[int], jobs: int = 1, draw_plan: Callable[[int], AnyPlan] = draw
) -> Generator[WalkOutcome, None, None]:
    """Run many seeds. Order: that of the seeds, whatever the number of jobs."""
    return sim_seeds.in_order(partial(run_seed, draw_plan=draw_plan), seeds, jobs, _CHUNK)


def shrink(
    plan: AnyPlan, path: list[Action], invariant: str, actions_max: int = 300_000
) -> tuple[AnyPlan, list[Action]]:
    """Return the smallest cluster and path found that violate the same invariant.

    `actions_max` bounds the actions to be replayed, so that the result is always the same.
    """
    left = actions_max

    def still_fails(fewer: list[Action]) -> list[Action] | None:
        nonlocal left
        left -= len(fewer)
        found = play(plan, fewer)
        return found.path if found.invariant == invariant else None

    def is_over() -> bool:
        return left <= 0

    path = fewest(path, still_fails, is_over)
    for change in plan.SIMPLER:
        before, plan = plan, replace(plan, **change)
        needed = None if is_over() else still_fails(path)
        if needed is None:
            plan = before
        else:
            path = needed
    return plan, fewest(path, still_fails, is_over)
