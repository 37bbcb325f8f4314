"""Filters on times, APIs and connections, as far as they save reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)

from kraftwire.spark.sources.filters import by_column, listed, narrowed

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

__all__ = ["CaptureBounds", "capture_bounds"]

_NS_PER_US = 1000


@dataclass
class CaptureBounds:
    """Values that rows may have; None for no limit.

    Units: nanoseconds since the epoch, both ends included.
    """

    since: int | None = None
    until: int | None = None
    apis: frozenset[int] | None = None
    connections: frozenset[str] | None = None

    def overlaps(self, first: int, last: int) -> bool:
        """Whether a span of time overlaps the bounds."""
        is_late = self.until is not None and first > self.until
        is_early = self.since is not None and last < self.since
        return not is_late and not is_early


def capture_bounds(filters: Iterable[Filter]) -> CaptureBounds:
    """Return the bounds that all filters together set."""
    bounds = CaptureBounds()
    for column, one in by_column(filters):
        if column in ("time", "time_ns"):
            _narrow_times(bounds, one)
        elif column == "api_key" and (values := _values(one)) is not None:
            bounds.apis = narrowed(bounds.apis, values)
        elif column == "connection" and (values := _values(one)) is not None:
            bounds.connections = narrowed(bounds.connections, values)
    return bounds


def _values(one: Filter) -> frozenset[Any] | None:
    """Return the values that a filter allows for a column, if it lists them; null never matches."""
    return None if isinstance(one, EqualNullSafe) and one.value is None else listed(one)


def _narrow_times(bounds: CaptureBounds, one: Filter) -> None:
    low = isinstance(one, EqualTo | GreaterThan | GreaterThanOrEqual)
    high = isinstance(one, EqualTo | LessThan | LessThanOrEqual)
    if not low and not high:
        return
    moment = _nanoseconds(one.value)
    if moment is None:
        return
    first, last = moment
    if low:
        bounds.since = first if bounds.since is None else max(bounds.since, first)
    if high:
        bounds.until = last if bounds.until is None else min(bounds.until, last)


def _nanoseconds(value: Any) -> tuple[int, int] | None:
    """Return the first and last nanosecond of a value; None for an ambiguous time."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, datetime) and value.tzinfo is not None:
        # Seconds in a double are accurate to about a microsecond.
        micros = int(value.timestamp()) * 1_000_000 + value.microsecond
        return micros * _NS_PER_US, micros * _NS_PER_US + _NS_PER_US - 1
    return None
