"""A script with a difference becomes the shortest one that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.oracle.running import numbers_of, ranges, shrunk


class Planted:
    """Controllers that differ at the last of the operations that are needed, in this order."""

    def __init__(self, *needed: int) -> None:
        self._needed = needed
        self.tries = 0

    def differs(self, numbers: Sequence[int]) -> int | None:
        """The place at which the difference shows."""
        self.tries += 1
        if all(number in numbers for number in self._needed):
            return list(numbers).index(self._needed[-1])
        return None


@pytest.mark.parametrize("needed", [(399,), (0, 399), (7, 8, 200, 203), (0, 1, 2, 3, 4)])
def test_only_what_a_difference_needs_is_left(needed: tuple[int, ...]) -> None:
    """With few tries: each is a cluster of Kafka that starts."""
    planted = Planted(*needed)
    assert shrunk(range(needed[-1] + 1), planted.differs) == list(needed)
    assert planted.tries < 100


def test_what_comes_after_the_difference_is_left_out() -> None:
    """A shorter script may differ earlier than the long one did."""

    def differs(numbers: Sequence[int]) -> int | None:
        return next((place for place, number in enumerate(numbers) if number % 10 == 3), None)

    assert shrunk(range(100), differs) == [3]


def test_a_script_that_stops_to_differ_stays_as_it_is() -> None:
    """As when the time is over."""
    assert shrunk(range(9), lambda _: None) == list(range(9))


def test_numbers_can_be_given_as_they_are_printed() -> None:
    """The command that runs a shortest script names its operations."""
    numbers = [0, 1, 2, 7, 11, 12]
    assert ranges(numbers) == "0-2,7,11-12"
    assert numbers_of("0-2,7,11-12") == numbers
