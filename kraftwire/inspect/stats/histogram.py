"""Quantiles of many values in little memory: a histogram of exponentially growing buckets.

The bounds of a bucket are a factor of `GROWTH` apart, and a value is taken to be the middle of its
bucket, so a quantile is wrong by at most half of that: 2.5 %. The smallest and the largest value
are exact.
"""

from __future__ import annotations

from collections import Counter
from math import floor, log

__all__ = ["ERROR", "GROWTH", "Histogram"]

GROWTH = 1.05
ERROR = (GROWTH - 1) / 2

_LOG = log(GROWTH)
# Smaller values count as this one, which is a nanosecond if the unit is milliseconds.
_LEAST = 1e-6


class Histogram:
    """A histogram of values that are not negative."""

    __slots__ = ("_buckets", "count", "largest", "smallest", "total")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0
        self.total = 0.0
        self.smallest = float("inf")
        self.largest = 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self._buckets[floor(log(max(value, _LEAST)) / _LOG)] += 1
        self.count += 1
        self.total += value
        self.smallest = min(self.smallest, value)
        self.largest = max(self.largest, value)

    def merge(self, other: Histogram) -> None:
        """Add the values of another histogram."""
        self._buckets.update(other._buckets)
        self.count += other.count
        self.total += other.total
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)

    def without(self, others: Histogram) -> Histogram:
        """Return a histogram without some of the values; the smallest and largest stay."""
        rest = Histogram()
        rest._buckets = self._buckets - others._buckets
        rest.count = self.count - others.count
        rest.total = self.total - others.total
        rest.smallest, rest.largest = self.smallest, self.largest
        return rest

    def quantile(self, share: float) -> float | None:
        """Return the value that a share of all values does not exceed; None without values."""
        if not self.count:
            return None
        rank = share * self.count
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                middle: float = GROWTH ** (bucket + 0.5)
                return min(max(middle, self.smallest), self.largest)
        return self.largest

    def to_json(self) -> dict[str, float | int | None]:
        """Return count, p50, p99 and maximum as a JSON object."""
        return {
            "count": self.count,
            "p50": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "max": self.largest if self.count else None,
        }
