"""Replays a path of the search and describes how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from kraftwire.raft.effects import SendRequest
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.packets import ReplicaAction
from kraftwire.sim.exhaust.steps import Steps, thaw
from kraftwire.sim.exhaust.world import State, StateSpace
from kraftwire.sim.failure_report import describe_failure
from kraftwire.sim.invariants import Violation
from kraftwire.sim.timeline import Timeline


class _Replay:
    """A path that is replayed without merging replicas. `state` is that before the last step."""

    def __init__(self, bounds: Bounds) -> None:
        self.timeline = Timeline()
        self.world = StateSpace(bounds, Steps(bounds, merges=False))
        self.state = self.world.first()

    def run(self, path: Sequence[int]) -> Violation | None:
        """Take all steps; returns what they violate. Raises: IndexError if it is not a path."""
        world, state = self.world, self.state
        try:
            for choice in path:
                after = world.after(state, world.ordered(state)[choice])
                if after is None:
                    raise IndexError(f"{choice} is out of bounds")
                state = after
        except Violation as violation:
            return violation
        return None

    def record(self, state: State, what: ReplicaAction) -> None:
        """Add the line of a replica's step."""
        self.state = state
        steps = self.world.steps
        local, name = steps.locals[state.replicas[what.at]], steps.events.values[what.event]
        head = f"{len(self.timeline) + 1:3} "
        if name[0] == "restart":
            self.timeline.note(head, f"{local.at} restarts, {name[1]} unflushed batches survive")
        node = steps.node_after(local, what.event)
        # Requests to bootstrap servers are lost.
        effects = [
            one
            for one in node.trace
            if not (isinstance(one, SendRequest) and one.destination.id < 0)
        ]
        self.timeline.step(head, local.at, node.event, effects)

    def describe(self, title: str, violation: Violation) -> list[str]:
        """Describe the violation that ended it."""
        replicas = [thaw(self.world.steps.locals[one].frozen) for one in self.state.replicas]
        checkers = Checkers(self.world.history(self.state))
        checkers.models = {one.node.id: one.model for one in replicas}
        cores = {one.node.id: one.node.core for one in replicas}
        return describe_failure(title, violation, self.timeline, checkers, cores)


def replay(bounds: Bounds, path: Sequence[int]) -> Violation | None:
    """Replay a path; returns what it violates.

    Raises: IndexError if it is not a path within these bounds.
    """
    return _Replay(bounds).run(path)


def describe_path(bounds: Bounds, path: Sequence[int]) -> list[str]:
    """Replay a path and describe how it ends; the last line is the command that repeats it."""
    replayed = _Replay(bounds)
    replayed.world.on_step = replayed.record
    violation = replayed.run(path)
    if violation is None:
        return ["nothing is violated", command(bounds, path)]
    title = f"{bounds.voters} voters: fails after {len(path)} steps"
    return [*replayed.describe(title, violation), command(bounds, path)]


def command(bounds: Bounds, path: Sequence[int]) -> str:
    """Return the command that replays a path."""
    options = [
        f"--{one.name.replace('_', '-')} {getattr(bounds, one.name)}"
        for one in fields(bounds)
        if getattr(bounds, one.name) != one.default
    ]
    return " ".join(["kraftwire sim exhaust", *options, f"--path {'.'.join(map(str, path))}"])
