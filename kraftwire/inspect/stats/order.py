"""The order in which the rows of tables are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from kraftwire.inspect.stats.exchanges import Row
from kraftwire.inspect.stats.histogram import Histogram

__all__ = ["Sort", "in_order", "slowest_first"]

Sort = Literal["p99", "p50", "max", "waited", "requests", "errors", "sent", "received", "name"]

Name = TypeVar("Name")

# Rows without a value come last.
_NOTHING = -1.0

_KEYS: dict[str, Callable[[Row], float]] = {
    "p99": lambda row: _quantile(row, 0.99),
    "p50": lambda row: _quantile(row, 0.5),
    "max": lambda row: row.service.largest if row.service.count else _NOTHING,
    "waited": lambda row: row.wait.total,
    "requests": lambda row: row.requests,
    "errors": lambda row: sum(row.errors.values()),
    "sent": lambda row: row.request_bytes,
    "received": lambda row: row.response_bytes,
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


def _quantile(row: Row, share: float) -> float:
    value = row.service.quantile(share)
    return _NOTHING if value is None else value
