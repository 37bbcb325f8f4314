"""Which of many cases are tried on a day, where there is no time for all of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import gcd
from typing import TypeVar

T = TypeVar("T")

_DAY_S = 86_400


def today() -> int:
    """The number of this day."""
    return int(time.time() // _DAY_S)


def of_the_day(found: Sequence[T], count: int, day: int) -> list[T]:
    """This many of them for a day, different ones for the next.

    Those of a day begin where those of the day before end, or just before. The step has no factor
    in common with their number, so each is tried within a few days, and each is first on some day:
    a time limit never leaves out the same one every day.
    """
    total = len(found)
    if not total:
        return []
    count = min(count, total)
    step = next(step for step in range(count, 0, -1) if gcd(step, total) == 1)
    start = day * step % total
    return [*found[start:], *found[:start]][:count]
