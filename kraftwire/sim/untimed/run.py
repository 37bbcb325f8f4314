"""Runs the untimed clusters of seeds, replays paths, shortens failing ones, and sums up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from kraftwire.sim import seeds as sim_seeds
from kraftwire.sim.failure_report import describe_failure
from kraftwire.sim.fewest import fewest
from kraftwire.sim.invariants import Violation
from kraftwire.sim.timeline import Timeline
from kraftwire.sim.untimed.plan import KINDS, Plan, draw
from kraftwire.sim.untimed.scheduler import Scheduler
from kraftwire.sim.untimed.stabilization import check_stabilization
from kraftwire.sim.untimed.world import Action, World

# How many seeds a process gets at a time.
_CHUNK = 32

STABILIZATION: Action = ("stabilize",)


@dataclass(slots=True)
class WalkOutcome(sim_seeds.ClusterOutcome):
    """The result of one cluster; `path` is what happened, up to the violation."""

    steps: int = 0
    elections: int = 0
    path: list[Action] = field(default_factory=list)


@dataclass(slots=True)
class WalkTotals(sim_seeds.StepTotals):
    """Totals over clusters."""

    SHOWN: ClassVar[tuple[str, ...]] = ("steps", "elections", "commits")

    elections: int = 0


def explore(plan: Plan) -> WalkOutcome:
    """Let as many random events happen as the plan says, then let the cluster
    stabilize."""
    world = World(plan)
    scheduler = Scheduler(plan, world)

    def apply() -> None:
        world.begin()
        for _ in range(2 * plan.steps):
            what = scheduler.next() if len(world.history) < plan.steps else None
            if what is not None:
                world.apply(*what)
        if plan.seed % 2:
            _stabilize(world)

    return _outcome(world, apply)


def play(
    plan: Plan,
    path: Sequence[Action],
    world: World | None = None,
    before: Callable[[Action], None] = lambda _: None,
) -> WalkOutcome:
    """Replay a path; events that are not possible are skipped.

    The path of the outcome ends with the violation. `before` is called before each event.
    """
    world = world or World(plan)

    def apply() -> None:
        world.begin()
        for what in path:
            before(what)
            if what == STABILIZATION:
                _stabilize(world)
            else:
                world.apply(*what)

    return _outcome(world, apply)


def _stabilize(world: World) -> None:
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


def _outcome(world: World, apply: Callable[[], None]) -> WalkOutcome:
    outcome = WalkOutcome(world.plan.seed, path=world.history)
    outcome.run(apply)
    outcome.steps = sum(world.coverage.get(kind, 0) for kind in KINDS)
    outcome.elections = len(world.checkers.history.leaders)
    outcome.commits = world.checkers.history.frontier
    outcome.coverage = Counter(world.coverage)
    return outcome


# Actions that no step of a node shows.
_NOTES = {
    "part": "no messages",
    "heal": "all messages pass again",
    "crash": "crashes",
    "cut": "will crash between two effects",
    "cancel_cut": "will not crash between two effects",
    "wipe": "gets an empty disk",
    "again": "gets a request once more",
    "oversleep": "has slept",
}


def describe_path(plan: Plan, path: Sequence[Action]) -> list[str]:
    """Replay a path and describe how it ends, in one line if it violates nothing."""
    world, timeline = World(plan), Timeline()

    def head() -> str:
        return f"{len(timeline):3} "

    def note(what: Action) -> None:
        kind, *rest = what
        if kind == "part":
            links = ", ".join(f"{sender} to {target}" for sender, target in rest[0])
            timeline.note(head(), f"{_NOTES[kind]} from {links}")
        elif kind in _NOTES:
            node = rest[0][1] if kind == "again" else rest[0] if rest else ""
            timeline.note(head(), f"{node} {_NOTES[kind]}".strip())

    world.on_step = lambda node: timeline.step(head(), node.id, node.event, node.trace)
    outcome = play(plan, path, world, note)
    if outcome.violation is None:
        return [f"seed {plan.seed}: nothing is violated by {len(path)} actions"]
    kind = "kraft.version 1" if plan.is_dynamic else "static voters"
    size = f"{plan.voters} voters, {plan.others} others, {kind}"
    title = f"seed {plan.seed}, {size}: fails after {len(outcome.path)} actions"
    roles = {
        node.id: f"{node.core.role} in epoch {node.core.epoch}" for node in world.nodes.values()
    }
    return describe_failure(title, outcome.violation, timeline, world.checkers, roles)


def run_seed(seed: int) -> WalkOutcome:
    """Run the cluster of a seed."""
    outcome = explore(draw(seed))
    if outcome.violation is None:
        outcome.path = []
    return outcome


def run_seeds(seeds: Iterable[int], jobs: int = 1) -> Generator[WalkOutcome, None, None]:
    """Run many seeds. Order: that of the seeds, whatever the number of jobs."""
    return sim_seeds.in_order(run_seed, seeds, jobs, _CHUNK)


# Without further nodes, without state machines, with Kafka's timers.
_SIMPLER: tuple[dict[str, object], ...] = (
    {"others": 0},
    {"with_state": False},
    {"auto_join": False},
    {"timers": {"append_linger_ms": 0}},
    {"fetch_max_bytes": 1 << 20, "chunk_bytes": 1 << 20},
)


def shrink(
    plan: Plan, path: list[Action], invariant: str, actions_max: int = 300_000
) -> tuple[Plan, list[Action]]:
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
    for change in _SIMPLER:
        before, plan = plan, replace(plan, **change)  # type: ignore[arg-type]
        needed = None if is_over() else still_fails(path)
        if needed is None:
            plan = before
        else:
            path = needed
    return plan, fewest(path, still_fails, is_over)
