"""Every checker, on histories that break its invariant and on near misses that do not.

A checker that sees nothing lets every simulation pass; one that cries wolf stops them all.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftwire.sim.invariants import Violation
from tests.simulation import (
    examples_of_elections,
    examples_of_logs,
    examples_of_snapshots,
    examples_of_voters,
)

_MADE = (examples_of_elections, examples_of_logs, examples_of_snapshots, examples_of_voters)
_BAD = [one for made in _MADE for one in made.BAD]
_NEAR = [one for made in _MADE for one in made.NEAR]


@pytest.mark.parametrize(
    ("invariant", "history"),
    _BAD,
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_history_that_breaks_an_invariant_is_seen(
    invariant: str, history: Callable[[], None]
) -> None:
    """The checker objects to the last step, not to an earlier one."""
    with pytest.raises(Violation) as error:
        history()
    assert error.value.invariant == invariant


@pytest.mark.parametrize("history", _NEAR, ids=lambda history: history.__name__)
def test_a_near_miss_is_let_through(history: Callable[[], None]) -> None:
    """A false alarm costs as much time to understand as a bug."""
    history()


def test_every_safety_invariant_of_the_list_has_a_history() -> None:
    """S22 is the trace hash, which has a separate test."""
    seen = {invariant for invariant, _ in _BAD}
    assert seen == {f"S{number}" for number in range(1, 22)}
