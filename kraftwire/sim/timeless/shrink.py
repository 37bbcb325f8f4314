"""Removes from a failing path all events that are not needed for the same violation."""

from __future__ import annotations

import time
from dataclasses import replace

from kraftwire.sim.timeless.plan import Plan
from kraftwire.sim.timeless.run import play
from kraftwire.sim.timeless.world import Happening

__all__ = ["shrink"]

# Without further nodes, without state machines, with Kafka's timers.
_SIMPLER: tuple[dict[str, object], ...] = (
    {"others": 0},
    {"with_state": False},
    {"auto_join": False},
    {"timers": {"append_linger_ms": 0}},
    {"fetch_max_bytes": 1 << 20, "chunk_bytes": 1 << 20},
)


def shrink(
    plan: Plan, path: list[Happening], invariant: str, within_s: float = 20.0
) -> tuple[Plan, list[Happening]]:
    """Return the smallest cluster and path found that violate the same invariant.

    Units: `within_s` bounds the CPU seconds to be spent.
    """
    end = time.process_time() + within_s
    path = _without(plan, path, invariant, end)
    for change in _SIMPLER:
        if time.process_time() >= end:
            break
        smaller = replace(plan, **change)  # type: ignore[arg-type]
        found = play(smaller, path)
        if found.invariant == invariant:
            plan, path = smaller, found.path
    return plan, _without(plan, path, invariant, end)


def _without(
    plan: Plan, path: list[Happening], invariant: str, end: float
) -> list[Happening]:
    """Leave out halves, quarters, and so on down to single events."""
    size = max(len(path) // 2, 1)
    while time.process_time() < end:
        before = len(path)
        start = 0
        while start < len(path) and time.process_time() < end:
            found = play(plan, path[:start] + path[start + size :])
            if found.invariant == invariant and len(found.path) < len(path):
                path = found.path
            else:
                start += size
        if size == 1 and len(path) == before:
            break
        size = max(size // 2, 1)
    return path
