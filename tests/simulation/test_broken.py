"""Rules broken on purpose: each is found by a simulated cluster, so each invariant is alive.

A search begins with the seed that found the bug before, and tries up to 500 seeds.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import pytest

from kraftwire.sim.plan import Plan, draw
from kraftwire.sim.run import run_plan
from tests.simulation import broken

_SEEDS = 500
_LENGTH_MS = 60_000

NAMES = [module.name for module in pkgutil.iter_modules(broken.__path__)]


def _drawn(seed: int) -> Plan:
    return draw(seed, _LENGTH_MS)


def search(rule: ModuleType) -> tuple[int, str, str]:
    """The seed that finds a broken rule, the invariant and what it says; -1 if none does."""
    plan: Callable[[int], Plan] = getattr(rule, "plan", _drawn)
    first = getattr(rule, "SEED", 0)
    for seed in (first, *(seed for seed in range(_SEEDS) if seed != first)):
        outcome = run_plan(plan(seed))
        if outcome.invariant:
            return seed, outcome.invariant, outcome.detail
    return -1, "", "not found"


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must also be found by an invariant that concerns it."""
    rule = import_module(f"tests.simulation.broken.{name}")
    rule.break_rule(monkeypatch)
    seed, invariant, detail = search(rule)
    print(f"{name}: seed {seed}: {invariant}: {detail}")
    assert invariant in rule.FOUND_BY, f"seed {seed}: {invariant}: {detail}"
