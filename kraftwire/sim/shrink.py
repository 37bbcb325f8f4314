"""Reduces a failing plan as long as it fails in the same way, until only what matters remains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from kraftwire.sim.fewest import fewest
from kraftwire.sim.plan import Fault, Plan, Weather
from kraftwire.sim.run import run_plan

_LENGTHS = (0.1, 0.25, 0.5, 0.75, 0.9)
_MS_PER_S = 1000


def shrink(plan: Plan, tries: int = 400, on_smaller: Callable[[Plan], None] | None = None) -> Plan:
    """Return the smallest plan found that violates the same invariant.

    `tries` bounds the runs; `on_smaller` is called with every smaller plan that still fails.
    """
    first = run_plan(plan)
    if not first.invariant:
        return plan
    search = _Search(plan, first.invariant, tries, on_smaller)
    search.cut(first.virtual_seconds)
    while search.improve():
        pass
    return search.best


class _Search:
    """A search for smaller plans. `best` is the smallest found so far."""

    def __init__(
        self, plan: Plan, invariant: str, tries: int, on_smaller: Callable[[Plan], None] | None
    ) -> None:
        self.best = plan
        self._invariant = invariant
        self._left = tries
        self._on_smaller = on_smaller
        self._seen = {repr(plan)}

    def improve(self) -> bool:
        """Try once to leave out each part; returns whether anything was left out."""
        before = self.best
        self._shorten()
        self._drop_faults()
        for changes in (_fewer_nodes, _quieter, _milder_faults):
            # After a reduction the other candidates are tried on the result, none of them twice.
            while any(self._fails(smaller) for smaller in changes(self.best)):
                pass
        return self.best is not before and self._left > 0

    def cut(self, seconds: float) -> None:
        """End the plan at the failure: nothing after that matters."""
        length = int(seconds * _MS_PER_S) + 1
        if length < self.best.length_ms:
            self._fails(_until(self.best, length))

    def _fails(self, plan: Plan) -> bool:
        """Return whether a plan fails in the same way; it then becomes the best one."""
        known = repr(plan)
        if self._left <= 0 or known in self._seen:
            return False
        self._seen.add(known)
        self._left -= 1
        found = run_plan(plan)
        if found.invariant != self._invariant:
            return False
        self.best = plan
        if self._on_smaller is not None:
            self._on_smaller(plan)
        self.cut(found.virtual_seconds)
        return True

    def _shorten(self) -> None:
        """Try shorter plans."""
        for share in _LENGTHS:
            while self._fails(_until(self.best, int(self.best.length_ms * share))):
                pass

    def _drop_faults(self) -> None:
        """Leave out faults, halves of them, and so on down to single ones."""

        def still_fails(faults: list[Fault]) -> list[Fault] | None:
            fails = self._fails(replace(self.best, faults=tuple(faults)))
            return list(self.best.faults) if fails else None

        fewest(list(self.best.faults), still_fails, lambda: self._left <= 0)


def _until(plan: Plan, length_ms: int) -> Plan:
    faults = tuple(fault for fault in plan.faults if fault.at_ms <= length_ms)
    return replace(plan, length_ms=length_ms, faults=faults)


def _fewer_nodes(plan: Plan) -> Iterator[Plan]:
    for observers in sorted({0, plan.observers // 2, plan.observers - 1}):
        if 0 <= observers < plan.observers:
            yield replace(plan, observers=observers)
    for voters in sorted({3, plan.voters - 2, plan.voters - 1}):
        if 1 <= voters < plan.voters:
            yield replace(plan, voters=voters)


def _quieter(plan: Plan) -> Iterator[Plan]:
    """Plans with plain settings: all settings at once, then one after another."""
    right = (1_000_000,) * plan.nodes if plan.drift else ()
    simple: dict[str, object] = {
        "weather": Weather(),
        "drift": right,
        "skew_ms": (0,),
        "old_peers": {},
        "with_bytes": False,
        "with_listener": False,
        "with_late_answers": False,
        "timers": {},
        "snapshots": None,
        "record_bytes": 0,
        "segment_bytes": 1 << 20,
        "crash_policies": ("none",),
    }
    yield replace(plan, **simple)  # type: ignore[arg-type]
    for name, value in simple.items():
        if getattr(plan, name) != value:
            yield replace(plan, **{name: value})  # type: ignore[arg-type]
    quiet = Weather()
    for part in fields(Weather):
        value = getattr(quiet, part.name)
        if getattr(plan.weather, part.name) != value:
            yield replace(plan, weather=replace(plan.weather, **{part.name: value}))
    if plan.appends_per_second > 0.5:
        yield replace(plan, appends_per_second=plan.appends_per_second / 2)


def _milder_faults(plan: Plan) -> Iterator[Plan]:
    """Plans with one fault repaired sooner."""
    for place, fault in enumerate(plan.faults):
        for length in (100, fault.length_ms // 2):
            if length < fault.length_ms:
                milder = replace(fault, length_ms=length)
                faults = (*plan.faults[:place], milder, *plan.faults[place + 1 :])
                yield replace(plan, faults=faults)
