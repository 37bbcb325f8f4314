"""Which mutants are tried on which day."""

from __future__ import annotations

import pytest

from tests.mutants.catalogue import ALL
from tests.mutants.choosing import matching
from tests.support.suite.of_the_day import of_the_day

_DAY = 20_000


@pytest.mark.parametrize("count", [1, 7, 12, 60, len(ALL) // 2, len(ALL) - 1, len(ALL)])
def test_every_mutant_comes_up_and_comes_first_on_some_day(count: int) -> None:
    """A time limit may leave out the last ones of a day, so each has to be first at times."""
    days = [of_the_day(ALL, count, _DAY + day) for day in range(len(ALL))]
    assert {len({one.name for one in day}) for day in days} == {count}
    if count < len(ALL):
        assert {day[0].name for day in days} == {one.name for one in ALL}
    else:
        assert set(days[0]) == set(ALL)


@pytest.mark.parametrize("count", [12, 60])
def test_all_come_up_within_few_days(count: int) -> None:
    """The step from day to day is smaller than a day's number, but not by half."""
    days = 2 * len(ALL) // count
    seen = {one.name for day in range(days) for one in of_the_day(ALL, count, _DAY + day)}
    assert len(seen) == len(ALL)


def test_the_day_decides_alone() -> None:
    """A second run on the same day gets the same mutants."""
    assert of_the_day(ALL, 12, _DAY) == of_the_day(ALL, 12, _DAY)
    assert not set(of_the_day(ALL, 12, _DAY)) & set(of_the_day(ALL, 12, _DAY + 2))


def test_more_than_there_are_means_all() -> None:
    """They may be in any order."""
    assert set(of_the_day(ALL[:5], 60, _DAY)) == set(ALL[:5])
    assert of_the_day([], 60, _DAY) == []


def test_texts_are_looked_for_in_names_and_rings() -> None:
    """Any of several texts is enough."""
    found = matching(ALL, ["half of the votes win", "half of the voters commit"])
    assert [one.name for one in found] == ["half of the votes win", "half of the voters commit"]
    assert matching(ALL, []) == list(ALL)
    assert all("untimed" in one.ring for one in matching(ALL, ["untimed"]))


def test_names_are_not_given_twice() -> None:
    """A verdict identifies its mutant by name."""
    assert len({one.name for one in ALL}) == len(ALL)
