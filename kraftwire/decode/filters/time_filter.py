"""The times that filters are given: fixed ones, and those that count from the start of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from kraftwire.errors import UsageError

__all__ = ["Clock", "ensure_order", "moment", "parse_time"]

_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_NS_PER_SECOND = 1_000_000_000


@dataclass(slots=True)
class Clock:
    """When a run begins: the time of its first frame or batch, None before that.

    Units: nanoseconds since the epoch.
    """

    start_ns: int | None = None

    def begin(self, time_ns: int) -> None:
        """Note a time; the first one counts."""
        if self.start_ns is None:
            self.start_ns = time_ns


def moment(text: str, clock: Clock) -> Callable[[], int]:
    """A time, which with a plus counts from the start of the run.

    Raises: UsageError for anything else.
    """
    if not text.startswith("+"):
        fixed = parse_time(text)
        return lambda: fixed
    if not _SECONDS.fullmatch(text[1:]):
        raise UsageError(f"{text!r} is not a time: after + there are seconds since the first frame")
    after = parse_time(text[1:])
    return lambda: (clock.start_ns or 0) + after


def ensure_order(since: str | None, until: str | None) -> None:
    """Refuse a period that ends before it begins, as far as that shows before the run.

    Raises: UsageError.
    """
    if since is None or until is None or since.startswith("+") != until.startswith("+"):
        return
    if moment(until, Clock(0))() < moment(since, Clock(0))():
        raise UsageError(f"nothing is both since {since} and until {until}")


def parse_time(text: str) -> int:
    """Nanoseconds since the epoch of a time: seconds since the epoch, or ISO 8601.

    A time without offset is UTC. Raises: UsageError for anything else.
    """
    if _SECONDS.fullmatch(text):
        seconds, _, fraction = text.partition(".")
        return int(seconds) * _NS_PER_SECOND + int(fraction[:9].ljust(9, "0"))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time. A time is ISO 8601 such as 2026-11-21T04:49:02 (UTC), "
            "seconds since the epoch such as 1795236542.5, or seconds since the first frame such "
            "as +12.5"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    whole = found.replace(microsecond=0)
    return int(whole.timestamp()) * _NS_PER_SECOND + found.microsecond * 1000
