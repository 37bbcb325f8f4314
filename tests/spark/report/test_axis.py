"""The axis of plots: long times without a recording are cut out, and nothing else moves."""

from __future__ import annotations

import numpy as np
import pytest

from kraftwire.spark.report.axis import TimeAxis, densest, without_holes
from tests.spark.report.folders import SECOND, START

DAY = 86_400 * SECOND


def test_without_holes_places_are_times() -> None:
    """A capture without a pause has the axis that it always had."""
    axis = without_holes((START, START + 100 * SECOND), [])
    assert axis == TimeAxis(START, START + 100 * SECOND)
    assert axis.place(START + 7) == axis.time(START + 7) == START + 7
    assert (axis.length, axis.bucket_s) == (100 * SECOND, 1)


@pytest.mark.parametrize("number", [2, 3, 30])
def test_recordings_of_several_days_fill_the_axis(number: int) -> None:
    """What is left of the holes takes at most an eighth as much as what is recorded."""
    recorded = 600 * SECOND
    starts = [START + each * DAY for each in range(number)]
    holes = [(at + recorded, at + DAY) for at in starts[:-1]]
    axis = without_holes((START, starts[-1] + recorded), holes)
    assert number * recorded < axis.length <= number * recorded * 9 // 8
    assert axis.bucket_s == next(each for each in (5, 15, 60) if axis.length <= 400 * each * SECOND)
    before = START - 1
    for at in starts:
        assert axis.place(at) > before
        for time in (at, at + 1, at + recorded // 3, at + recorded):
            assert axis.time(axis.place(time)) == time
        assert axis.place(at + recorded) - axis.place(at) == recorded
        before = axis.place(at + recorded)
    times = np.array([at + 3 for at in starts])
    assert axis.places(times).tolist() == [axis.place(at + 3) for at in starts]


def test_a_time_that_is_cut_out_is_at_the_cut() -> None:
    """A leader may be known at a time that nothing recorded."""
    axis = TimeAxis(0, 1000, ((100, 400), (500, 900)))
    assert [axis.place(each) for each in (99, 100, 250, 400, 401)] == [99, 100, 100, 100, 101]
    assert [axis.place(each) for each in (500, 700, 900, 1000)] == [200, 200, 200, 300]
    assert (axis.length, axis.joints) == (300, [(100, 300), (200, 400)])
    assert [axis.time(each) for each in (100, 101, 200, 201)] == [100, 401, 500, 901]


def test_a_short_hole_stays() -> None:
    """It is drawn in full: a pause of five seconds in a minute is something to see."""
    axis = without_holes((0, 65 * SECOND), [(30 * SECOND, 31 * SECOND + SECOND // 2)])
    assert axis.cuts == ()


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ({0: 1, 50: 40, 51: 50, 52: 5, 99: 4}, (50, 51)),
        ({0: 10, 99: 10}, None),
        (dict.fromkeys(range(100), 1), None),
        ({7: 3}, (7, 7)),
        ({}, None),
    ],
)
def test_plots_begin_where_nearly_all_is(
    counts: dict[int, int], found: tuple[int, int] | None
) -> None:
    """A burst in a long quiet capture is what there is to see; even traffic is shown whole."""
    assert densest(counts, 100) == found
