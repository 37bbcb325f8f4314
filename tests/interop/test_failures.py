"""A broker loses its disk and an active controller is killed, under idempotent producers.

``python -m tests.failures`` has all failures, and Kafka's controllers beside ours.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from tests.failures.script import (
    BROKER_STEPS,
    CONTROLLER_KILLED,
    KILLED,
    WITHOUT_DISK,
    Outcome,
    Step,
    run_script,
)
from tests.support.kafka.mixed_quorum.kinds import kind_under_test


def test_nothing_is_lost_with_a_disk_or_with_a_controller(tmp_path: Path) -> None:
    """What was acknowledged is there once, no send is slow, and no broker registers again."""
    steps = [step for step in BROKER_STEPS if step[0] == WITHOUT_DISK]
    outcome = run_script(tmp_path, kind_under_test(), kills=1, broker_steps=steps)
    assert [step.name for step in outcome.steps] == [WITHOUT_DISK, CONTROLLER_KILLED]
    assert outcome.acknowledged > 40
    assert outcome.problems() == []


def test_what_must_not_be_is_a_problem() -> None:
    """Otherwise a run could find nothing."""
    found = Outcome(
        steps=[Step(KILLED, 7.5, 2.0), Step(CONTROLLER_KILLED, 1.0, 10.5)],
        lost=["twice 1"],
        doubled=["twice 2"],
        failures=["twice 3: late"],
        registrations=1,
        fencings=1,
    )
    words = (
        *("lost: twice 1", "doubled: twice 2", "given up: twice 3"),
        *("fenced after 7.5", "a send took 10.5", "1 registrations", "1 changes"),
    )
    problems = found.problems()
    assert len(problems) == len(words)
    assert all(any(word in line for line in problems) for word in words)
    fine = Outcome(steps=[Step(KILLED, 6.5, 9.5), Step(CONTROLLER_KILLED, 30.0, 1.0)])
    assert fine.problems() == []
