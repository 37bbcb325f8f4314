"""Rules broken on purpose: each is found by a simulated cluster, so each invariant is alive.

A search begins with the seed that found the bug before, and tries up to 500 seeds.
"""

from __future__ import annotations

import pytest

from kraftwire.sim.plan import Plan, draw
from kraftwire.sim.run import run_plan
from tests.simulation.broken_rules import RULES, BrokenRule

_SEEDS = 500
_LENGTH_MS = 60_000


def _drawn(seed: int) -> Plan:
    return draw(seed, _LENGTH_MS)


def search(rule: BrokenRule) -> tuple[int, str, str]:
    """The seed that finds a broken rule, the invariant and what it says; -1 if none does."""
    plan = rule.plan or _drawn
    for seed in (rule.seed, *(seed for seed in range(_SEEDS) if seed != rule.seed)):
        outcome = run_plan(plan(seed))
        if outcome.violation is not None:
            return seed, outcome.violation.invariant, outcome.violation.detail
    return -1, "", "not found"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_a_broken_rule_is_found(rule: BrokenRule, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must also be found by an invariant that concerns it."""
    rule.break_rule(monkeypatch)
    seed, invariant, detail = search(rule)
    print(f"{rule.name}: seed {seed}: {invariant}: {detail}")
    assert invariant in rule.found_by, f"seed {seed}: {invariant}: {detail}"
