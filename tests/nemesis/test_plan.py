"""Plans of faults are functions of their seeds."""

from __future__ import annotations

from tests.nemesis.plan import ACTIONS, REPLACE, make_plan


def test_a_seed_makes_one_plan() -> None:
    """A failure can then be reproduced."""
    assert make_plan(1, 60) == make_plan(1, 60)
    assert make_plan(1, 60) != make_plan(2, 60)


def test_all_actions_come_and_all_faults_end_in_time() -> None:
    """No node is left down or cut off when the quorum has to show that it recovered."""
    for seed in range(200):
        is_dynamic = seed % 2 == 1
        plan = make_plan(seed, 40, is_dynamic=is_dynamic)
        expected = {*ACTIONS, REPLACE} if is_dynamic else {*ACTIONS}
        assert {step.action for step in plan.steps} == expected
        assert all(step.at + step.lasts <= plan.seconds for step in plan.steps)
        assert [step.at for step in plan.steps] == sorted(step.at for step in plan.steps)
