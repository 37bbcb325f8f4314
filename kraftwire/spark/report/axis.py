"""The time axis of all plots, without the long times that no capture recorded.

A place is a time less all that is cut out before it, so that places and times are the same up to
the first cut. Units: nanoseconds since the epoch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TimeSpan = tuple[int, int]

# The largest number of buckets in a plot.
_BUCKETS_MAX = 400
_BUCKET_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
_SECOND_NS = 1_000_000_000
# What is left of a hole, as a share of what is recorded: of each hole, and of all together.
_HOLE_SHARE = 40
_HOLES_SHARE = 8
# Plots begin with the shortest time that has this share of the exchanges, if it is short.
_DENSE_PERCENT = 90
_SHORT_SHARE = 5


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """An axis from `first` to `last`, with `cuts` in order, each the time that it leaves out."""

    first: int
    last: int
    cuts: tuple[TimeSpan, ...] = ()

    def place(self, time: int) -> int:
        """Return the place of a time: of one that is cut out, that of the cut."""
        index = bisect_right(self.cuts, (time, time))
        cut_out = sum(end - start for start, end in self.cuts[:index])
        if index and time < self.cuts[index - 1][1]:
            cut_out -= self.cuts[index - 1][1] - time
        return time - cut_out

    def places(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of many times, none of which is cut out."""
        ends = np.array([end for _, end in self.cuts], np.int64)
        lengths = np.array([0, *(end - start for start, end in self.cuts)], np.int64)
        moved: NDArray[np.int64] = times - lengths.cumsum()[np.searchsorted(ends, times, "right")]
        return moved

    def time(self, place: int) -> int:
        """Return the time of a place: of a cut, the first that it leaves out."""
        index = bisect_left([at for at, _ in self.joints], place)
        return place + sum(end - start for start, end in self.cuts[:index])

    @property
    def joints(self) -> list[TimeSpan]:
        """Return the place of each cut, and how much it leaves out."""
        return [(self.place(start), end - start) for start, end in self.cuts]

    @property
    def length(self) -> int:
        """Return the distance between the places of its ends."""
        return self.place(self.last) - self.first

    @property
    def bucket_s(self) -> int:
        """Return the width of a plot's buckets in seconds: a round number, and not too many."""
        seconds = self.length / _SECOND_NS
        fitting = (s for s in _BUCKET_WIDTHS_S if seconds / s <= _BUCKETS_MAX)
        return next(fitting, _BUCKET_WIDTHS_S[-1])


def without_holes(extent: TimeSpan, holes: Sequence[TimeSpan]) -> TimeAxis:
    """Return the axis of an extent, with most of its long `holes` cut out, from their middles."""
    recorded = extent[1] - extent[0] - sum(end - start for start, end in holes)
    if not holes or recorded <= 0:
        return TimeAxis(*extent)
    kept = max(_SECOND_NS, recorded // max(_HOLE_SHARE, _HOLES_SHARE * len(holes)))
    long = [(start, end) for start, end in holes if end - start >= 2 * kept]
    return TimeAxis(*extent, tuple((start + kept // 2, end - kept // 2) for start, end in long))


def densest(counts: Mapping[int, int], buckets: int) -> tuple[int, int] | None:
    """Return the shortest run of buckets with nearly all that was counted, first and last; None if
    it is not much shorter than all `buckets`.
    """
    filled = sorted(at for at, number in counts.items() if number)
    wanted = sum(counts.values()) * _DENSE_PERCENT / 100
    best: tuple[int, int] | None = None
    seen, begin = 0, 0
    for at in filled:
        seen += counts[at]
        while seen - counts[filled[begin]] >= wanted:
            seen -= counts[filled[begin]]
            begin += 1
        run = filled[begin], at
        if seen >= wanted and (best is None or run[1] - run[0] < best[1] - best[0]):
            best = run
    if best is None or (best[1] - best[0] + 1) * _SHORT_SHARE > buckets:
        return None
    return best
