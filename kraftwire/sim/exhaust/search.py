"""Visits every state of a cluster within bounds once, those with the fewest accidents first.

An accident is an epoch, a restart, a value, a change of the voters, a loss or a copy. Among states
with equally many accidents the search is breadth-first, so the path to a violation has the fewest
possible accidents, and is the shortest one with that number.
"""

from __future__ import annotations

import gc
import time
from array import array
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.steps import Steps
from kraftwire.sim.exhaust.world import State, StateSpace
from kraftwire.sim.invariants import Violation

_LOOKS = 1_000


@dataclass(slots=True)
class Found:
    """The result of a search.

    All states with up to `accidents` accidents were visited; `depth` is the length of the longest
    path; `path` leads to the violation: for each step, the index of the event in the list of
    `StateSpace.ordered`. Units: `seconds` of CPU time.
    """

    bounds: Bounds
    states: int = 0
    transitions: int = 0
    local_states: int = 0
    local_steps: int = 0
    accidents: int = -1
    depth: int = 0
    seconds: float = 0.0
    is_exhausted: bool = False
    violation: Violation | None = None
    path: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the object in the last line of `kraftwire sim exhaust --json`."""
        return {
            "states": self.states,
            "transitions": self.transitions,
            "local_states": self.local_states,
            "local_steps": self.local_steps,
            "accidents": self.accidents,
            "depth": self.depth,
            "seconds": round(self.seconds, 3),
            "states_per_second": round(self.states / max(self.seconds, 1e-9)),
            "exhausted": self.is_exhausted,
            "violations": int(self.violation is not None),
        }


def search(
    bounds: Bounds,
    states_max: int | None = None,
    within_s: float | None = None,
    steps: Steps | None = None,
    shown: Callable[[Found], None] = lambda _: None,
) -> Found:
    """Visit states until all are seen, one violates an invariant, or a limit is reached:

    `states_max` states, or `within_s` CPU seconds.
    """
    found = Found(bounds)
    steps = steps or Steps(bounds)
    end = None if within_s is None else time.monotonic() + within_s
    begin = time.process_time()

    def is_over() -> bool:
        shown(found)
        if states_max is not None and found.states >= states_max:
            return True
        return end is not None and time.monotonic() >= end

    # Everything that is allocated is kept, so garbage collection finds nothing.
    gc.disable()
    try:
        _Search(StateSpace(bounds, steps), found, is_over).run()
    finally:
        gc.enable()
        found.local_states = len(steps.locals)
        found.local_steps = steps.taken
        found.seconds = time.process_time() - begin
    return found


class _Search:
    """One search.

    `_parents` and `_choices` record how every state was first reached; `_seen` has the hashes of
    all states; `_layers` the states to be expanded, by accidents and length of the path.
    """

    def __init__(self, world: StateSpace, found: Found, is_over: Callable[[], bool]) -> None:
        self._world = world
        self._found = found
        self._is_over = is_over
        self._seen: set[int] = set()
        self._parents = array("q")
        self._choices = array("H")
        self._layers: dict[int, dict[int, list[tuple[int, State]]]] = {}

    def run(self) -> None:
        """Visit layer after layer."""
        found = self._found
        try:
            self._note(self._world.first(), -1, 0, 0)
        except Violation as violation:
            found.violation = violation
            return
        while self._layers:
            accidents = min(self._layers)
            layer = self._layers[accidents]
            while layer:
                depth = min(layer)
                if not self._visit(layer.pop(depth), depth):
                    return
            del self._layers[accidents]
            found.accidents = accidents
        found.is_exhausted = True

    def _visit(self, states: list[tuple[int, State]], depth: int) -> bool:
        """Expand states at the same depth; returns whether the search continues."""
        self._found.depth = max(self._found.depth, depth)
        for place, (number, state) in enumerate(states):
            if place % _LOOKS == 0 and self._is_over():
                return False
            if not self._expand(state, number, depth + 1):
                return False
        return True

    def _expand(self, state: State, number: int, depth: int) -> bool:
        """Record the successors of a state; returns whether nothing is violated."""
        found, after, seen = self._found, self._world.after, self._seen
        for choice, what in enumerate(self._world.actions(state)):
            try:
                made = after(state, what)
            except Violation as violation:
                found.violation = violation
                found.path = self._path([*self._choices_to(number), choice])
                return False
            if made is None:
                continue
            found.transitions += 1
            if hash(made) not in seen:
                self._note(made, number, choice, depth)
        return True

    def _note(self, state: State, parent: int, choice: int, depth: int) -> None:
        self._seen.add(hash(state))
        self._parents.append(parent)
        self._choices.append(choice)
        accidents = self._world.accidents(state)
        layer = self._layers.setdefault(accidents, defaultdict(list))
        layer[depth].append((self._found.states, state))
        self._found.states += 1

    def _choices_to(self, number: int) -> list[int]:
        """Return the events, as indexes in this search's lists, that lead to a state."""
        choices = []
        while self._parents[number] >= 0:
            choices.append(self._choices[number])
            number = self._parents[number]
        return choices[::-1]

    def _path(self, choices: list[int]) -> tuple[int, ...]:
        """Convert a path to indexes in lists that do not depend on the search."""
        world, path = self._world, []
        state: State | None = world.first()
        for choice in choices:
            assert state is not None
            what = list(world.actions(state))[choice]
            path.append(world.ordered(state).index(what))
            if len(path) < len(choices):
                state = world.after(state, what)
        return tuple(path)
