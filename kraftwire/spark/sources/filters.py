"""Filters that Spark pushes to the sources, as far as they save reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kraftwire.spark.logs.transactions import BatchFilter, Transactions

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_MIN, _MAX = -(2**63), 2**63 - 1

_NS_PER_US = 1000


@dataclass
class Bounds:
    """Values that rows may have; None for no limit.

    Offsets and milliseconds, both ends included.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_min: int = _MIN
    offset_max: int = _MAX
    timestamp_min: int = _MIN

    def batch_filter(self, transactions: Transactions | None) -> BatchFilter | None:
        """Return which batches are kept; None for all."""
        found = BatchFilter(self.offset_min, self.offset_max, self.timestamp_min, transactions)
        return None if found.is_all else found


def bounds_of(filters: Iterable[Filter], time_column: str | None = None) -> Bounds:
    """Return the bounds that all filters together set; `time_column` defaults to ``timestamp``."""
    bounds = Bounds()
    time_column = time_column or "timestamp"
    for column, one in by_column(filters):
        values = listed(one)
        if column == "topic" and values is not None:
            bounds.topics = narrowed(bounds.topics, values)
        elif column == "partition" and values is not None:
            bounds.partitions = narrowed(bounds.partitions, values)
        elif column == "offset":
            _narrow_offsets(bounds, one, values)
        elif column == time_column:
            _narrow_times(bounds, one)
    return bounds


def by_column(filters: Iterable[Filter]) -> Iterator[tuple[str, Filter]]:
    """Yield the filters on a single column of the table itself, with its name."""
    for one in filters:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        if len(attribute) == 1:
            yield attribute[0], one


def listed(one: Filter) -> frozenset[Any] | None:
    """Return the values that a filter allows for a column, if it lists them."""
    if isinstance(one, EqualTo | EqualNullSafe):
        return frozenset({one.value})
    return frozenset(one.value) if isinstance(one, In) else None


def narrowed(known: frozenset[Any] | None, values: frozenset[Any]) -> frozenset[Any]:
    """Return the intersection with the values so far; None stands for all."""
    return values if known is None else known & values


def _narrow_offsets(bounds: Bounds, one: Filter, values: frozenset[Any] | None) -> None:
    low, high = _MIN, _MAX
    if values is not None:
        numbers = [value for value in values if value is not None]
        low, high = min(numbers, default=_MAX), max(numbers, default=_MIN)
    elif isinstance(one, GreaterThan):
        low = one.value + 1
    elif isinstance(one, GreaterThanOrEqual):
        low = one.value
    elif isinstance(one, LessThan):
        high = one.value - 1
    elif isinstance(one, LessThanOrEqual):
        high = one.value
    bounds.offset_min = max(bounds.offset_min, low)
    bounds.offset_max = min(bounds.offset_max, high)


def _narrow_times(bounds: Bounds, one: Filter) -> None:
    """Set only lower bounds: a batch header has the largest timestamp, not the smallest."""
    if not isinstance(one, EqualTo | GreaterThan | GreaterThanOrEqual):
        return
    value = one.value
    # A time without a zone is ambiguous.
    if isinstance(value, datetime) and value.tzinfo is not None:
        bounds.timestamp_min = max(bounds.timestamp_min, int(value.timestamp() * 1000) - 1)


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
            _narrow_frames(bounds, one)
        elif column == "api_key" and (values := _values(one)) is not None:
            bounds.apis = narrowed(bounds.apis, values)
        elif column == "connection" and (values := _values(one)) is not None:
            bounds.connections = narrowed(bounds.connections, values)
    return bounds


def _values(one: Filter) -> frozenset[Any] | None:
    """Return the values that a filter allows for a column, if it lists them; null never matches."""
    return None if isinstance(one, EqualNullSafe) and one.value is None else listed(one)


def _narrow_frames(bounds: CaptureBounds, one: Filter) -> None:
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
