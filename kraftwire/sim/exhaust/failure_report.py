"""Describes a path in at most sixty lines: what happened, to which node, with what effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from kraftwire.raft import effects as do
from kraftwire.sim import describe
from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.packets import Action
from kraftwire.sim.exhaust.replica import NOBODY
from kraftwire.sim.exhaust.steps import Steps
from kraftwire.sim.exhaust.world import State, World
from kraftwire.sim.failure_lines import LINES_MAX, cut
from kraftwire.sim.failure_summary import summary_lines
from kraftwire.sim.invariants import Violation

_LAST = 20

# Effects that explain nothing: every append is flushed, every answer is sent.
_SILENT = (do.FlushLog, do.ResetConnections, do.DeliverCommitted, do.Note, do.VotersChanged)


def _is_silent(one: do.Effect) -> bool:
    # Requests to bootstrap servers are lost.
    is_lost = isinstance(one, do.SendRequest) and one.destination.id < 0
    return is_lost or isinstance(one, _SILENT)


class _Recorder:
    """Observes a world and keeps a line for every step of a replica."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lines: list[str] = []
        world.on_step = self.step

    def step(self, state: State, what: Action) -> None:
        """Add the line of a replica's step."""
        steps = self._world.steps
        local = steps.locals[state.replicas[what.at]]
        trace = steps.trace(local, what.event)
        came = "; ".join(describe.effects(one for one in trace if not _is_silent(one))) or "nothing"
        self.lines.append(cut(f"{self._cause(what)} | {local.at}: {came}"))

    def _cause(self, what: Action) -> str:
        steps = self._world.steps
        if what.packet < 0:
            name, *rest = steps.events.values[what.event]
            if name == "restart":
                return f"restart {what.at + 1}, {rest[0]} unflushed batches survive"
            return " ".join(str(part) for part in (name, what.at + 1, *rest))
        one = self._world.packets.values[what.packet]
        message = describe.message(steps.messages.values[one.message])
        if one.is_answer:
            return f"{one.target} to {one.asker}: {message}"
        late = ", late" if one.label == NOBODY else ""
        return f"{one.asker} to {one.target}{' once more' if what.stays else ''}{late}: {message}"


def replay(
    bounds: Bounds, path: Sequence[int], log: list[str] | None = None
) -> Violation | None:
    """Replay a path without merging replicas; returns what it violates.

    `log` gets a line for every step. Raises: IndexError if it is not a path within these bounds.
    """
    world = World(bounds, Steps(bounds, merges=False))
    recorder = _Recorder(world)
    try:
        state = world.first()
        for choice in path:
            after = world.after(state, world.ordered(state)[choice])
            if after is None:
                raise IndexError(f"{choice} is out of bounds")
            state = after
    except Violation as violation:
        return violation
    finally:
        if log is not None:
            log += recorder.lines
    return None


def describe_failure(bounds: Bounds, path: Sequence[int]) -> list[str]:
    """Return the lines that describe a path and its end, at most `LINES_MAX`."""
    lines: list[str] = []
    violation = replay(bounds, path, lines)
    lines = [f"{number:3} {line}" for number, line in enumerate(lines, 1)]
    head = ["nothing is violated"]
    if violation is not None:
        head = summary_lines(violation.invariant, violation.detail, violation.evidence)
    head.append(command(bounds, path))
    room = LINES_MAX - len(head)
    if len(lines) > room:
        first = room - 1 - _LAST
        gone = len(lines) - first - _LAST
        lines = [*lines[:first], f"    ... {gone} steps ...", *lines[-_LAST:]]
    return [*lines, *head]


def command(bounds: Bounds, path: Sequence[int]) -> str:
    """Return the command that replays a path."""
    options = [
        f"--{one.name.replace('_', '-')} {getattr(bounds, one.name)}"
        for one in fields(bounds)
        if getattr(bounds, one.name) != one.default
    ]
    return " ".join(["kraftwire sim exhaust", *options, f"--path {'.'.join(map(str, path))}"])
