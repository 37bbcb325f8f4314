"""The order in which the rows of tables are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from kraftwire.inspect.stats.exchanges import Row
from kraftwire.inspect.stats.histogram import Histogram

__all__ = ["Sort", "in_order", "slowest_first"]

Sort = Literal["p99", "requests", "errors", "name"]

Name = TypeVar("Name")

# Rows without a value come last.
_NOTHING = -1.0

_KEYS: dict[str, Callable[[Row], float]] = {
    "p99": lambda row: _p99(row.service),
    "requests": lambda row: row.requests,
    "errors": lambda row: sum(row.errors.values()),
}


def in_order(rows: Iterable[tuple[Name, Row]], sort: Sort) -> list[tuple[Name, Row]]:
    """Return the rows with their names, the largest values first, or names from A to Z."""
    by_name = sorted(rows, key=lambda each: str(each[0]))
    if sort == "name":
        return by_name
    key = _KEYS[sort]
    return sorted(by_name, key=lambda each: -key(each[1]))


def slowest_first(rows: Iterable[tuple[Name, Row]]) -> list[tuple[Name, Row]]:
    """Return the rows with their names by the p99 of what surely is service."""
    by_name = sorted(rows, key=lambda each: str(each[0]))
    return sorted(by_name, key=lambda each: -_p99(each[1].clear_service))


def _p99(service: Histogram) -> float:
    value = service.quantile(0.99)
    return _NOTHING if value is None else value
