"""The checks of clusters without time, on histories that break an invariant and on near misses."""

from __future__ import annotations

import pytest

from kraftwire.sim.invariants import MEANINGS, Violation
from tests.simulation.untimed import examples_of_elections, examples_of_logs, examples_of_members
from tests.simulation.untimed.examples import History

BAD = examples_of_elections.BAD + examples_of_logs.BAD + examples_of_members.BAD
NEAR = examples_of_elections.NEAR + examples_of_logs.NEAR + examples_of_members.NEAR


@pytest.mark.parametrize(("invariant", "history"), BAD, ids=lambda v: getattr(v, "__name__", v))
def test_a_history_that_breaks_an_invariant_is_seen(invariant: str, history: History) -> None:
    """The check objects to the last step, not to an earlier one."""
    with pytest.raises(Violation) as error:
        history()
    assert error.value.invariant == invariant


@pytest.mark.parametrize("history", NEAR, ids=lambda history: history.__name__)
def test_a_near_miss_is_let_through(history: History) -> None:
    """A false alarm costs as much time to understand as a bug."""
    history()


def test_every_safety_invariant_has_a_history() -> None:
    """A check without one may never object; S21 and S22 are not checked here."""
    seen = {invariant for invariant, _ in BAD}
    safety = {name for name in MEANINGS if name.startswith("S")}
    assert seen == safety - {"S21", "S22"}
