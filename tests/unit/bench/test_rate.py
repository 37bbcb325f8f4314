"""The search for the highest rate, and when a step counts as held."""

from __future__ import annotations

import pytest

from tests.bench.rate.search import Search
from tests.bench.rate.step import Step


def _found(search: Search, highest: float) -> list[int]:
    """Run a search against a program that holds this rate; returns the rates that were tried."""
    tried = []
    while (rate := search.rate) is not None:
        tried.append(rate)
        search.note(rate <= highest)
    return tried


@pytest.mark.parametrize("highest", [100, 2300, 5000, 33_000, 140_000])
def test_the_search_ends_just_below_what_is_held(highest: int) -> None:
    """Three halvings of a step of one half leave six percent."""
    search = Search(5000, 3)
    _found(search, highest)
    assert search.missed is not None
    assert search.held <= highest < search.missed
    assert search.missed / search.held < 1.06


def test_a_rate_has_a_second_try() -> None:
    """One bad moment of the machine is not the program's limit."""
    search = Search(1000, 0)
    search.note(False)
    assert search.rate == 1000
    search.note(True)
    assert search.rate == 1500
    search.note(False)
    search.note(False)
    assert (search.rate, search.held, search.missed) == (None, 1000, 1500)


def test_a_program_that_holds_nothing_ends_the_search() -> None:
    """It must not continue below one record a second."""
    search = Search(5000, 3)
    assert _found(search, 0)[-1] == 1
    assert search.held == 0


@pytest.mark.parametrize(
    ("share", "p99", "is_held"), [(1.0, 0.5, True), (0.98, 0.5, False), (1.0, 1.0, False)]
)
def test_a_step_is_held_if_enough_is_committed_soon(
    share: float, p99: float, is_held: bool
) -> None:
    """Either alone would accept a program that falls further and further behind."""
    assert Step(1000, share, p99).is_held is is_held
