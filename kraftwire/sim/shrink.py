"""Makes a failing plan smaller while it fails in the same way: what is left is what matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from kraftwire.sim.plan import Plan, Weather
from kraftwire.sim.run import run_plan

__all__ = ["shrink"]

_LENGTHS = (0.1, 0.25, 0.5, 0.75, 0.9)


def shrink(plan: Plan, tries: int = 400, told: Callable[[Plan], None] | None = None) -> Plan:
    """The smallest plan found that violates the same invariant; the same plan if none is.

    Shape: `tries` bounds the runs; `told` is called with every smaller plan that still fails.
    """
    first = run_plan(plan)
    if not first.invariant:
        return plan
    left = tries
    # Nothing after the violation matters.
    best = plan
    has_improved = True
    while has_improved and left > 0:
        has_improved = False
        for smaller in _smaller(best):
            if left <= 0:
                break
            left -= 1
            if run_plan(smaller).invariant == first.invariant:
                best = smaller
                has_improved = True
                if told is not None:
                    told(best)
                break
    return best


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, the most promising first."""
    for share in _LENGTHS:
        length = int(plan.length_ms * share)
        faults = tuple(fault for fault in plan.faults if fault.at_ms <= length)
        yield replace(plan, length_ms=length, faults=faults)
    yield from _fewer_faults(plan)
    yield from _calmer(plan)
    yield from _fewer_nodes(plan)


def _fewer_faults(plan: Plan) -> Iterator[Plan]:
    """Without a half, a quarter, and so on down to single faults."""
    count = len(plan.faults)
    size = count
    while size:
        for start in range(0, count, size):
            yield replace(plan, faults=plan.faults[:start] + plan.faults[start + size :])
        size //= 2


def _calmer(plan: Plan) -> Iterator[Plan]:
    calm = Weather()
    for part in fields(Weather):
        if getattr(plan.weather, part.name) != getattr(calm, part.name):
            value = getattr(calm, part.name)
            yield replace(plan, weather=replace(plan.weather, **{part.name: value}))
    right = (1_000_000,) * plan.nodes
    changes: tuple[tuple[str, object, object], ...] = (
        ("drift", plan.drift, right),
        ("skew_ms", plan.skew_ms, (0,)),
        ("old_peers", plan.old_peers, {}),
        ("with_bytes", plan.with_bytes, False),
        ("with_listener", plan.with_listener, False),
        ("with_late_answers", plan.with_late_answers, False),
        ("timers", plan.timers, {}),
        ("record_bytes", plan.record_bytes, 0),
        ("segment_bytes", plan.segment_bytes, 1 << 20),
    )
    for name, now, simple in changes:
        if now != simple:
            yield replace(plan, **{name: simple})  # type: ignore[arg-type]
    if plan.appends_per_second > 0.5:
        yield replace(plan, appends_per_second=plan.appends_per_second / 2)


def _fewer_nodes(plan: Plan) -> Iterator[Plan]:
    if plan.observers:
        yield replace(plan, observers=plan.observers - 1)
    if plan.voters > 1:
        yield replace(plan, voters=plan.voters - 1)
