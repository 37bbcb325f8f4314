"""The values of filter options: times, numbers with ranges, and names with wildcards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from kraftwire.errors import UsageError

# Signs in front of a value that is excluded.
NEGATIONS = ("!", "^")

_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_NS_PER_SECOND = 1_000_000_000
_RANGE = re.compile(r"(?P<low>\d+)(?:(?P<open>\+)|(?:-|\.\.)(?P<high>\d+))?")
_NUMBER_MAX = 2**63 - 1

# Pairs of the first and the last number.
Ranges = list[tuple[int, int]]


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


def as_ranges(values: Iterable[str]) -> Ranges:
    """Numbers and ranges of them, both ends included. Raises: UsageError for anything else."""
    return [_range(each) for each in values]


def _range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is neither a number nor a range such as 3-5 or 12+")
    low = int(match["low"])
    if match["open"]:
        return low, _NUMBER_MAX
    high = int(match["high"] or low)
    if high < low:
        raise UsageError(f"{text!r} ends before it begins")
    return low, high


def is_in(number: int, ranges: Ranges) -> bool:
    """Whether a number is in any of some ranges."""
    return any(low <= number <= high for low, high in ranges)


def is_wanted(names: Iterable[str], values: Iterable[str]) -> bool:
    """Whether any of some names is wanted by the values of an option, and none excluded."""
    wanted, unwanted = split_exclusions(values)
    known = list(names)
    if any(matches(name, unwanted) for name in known):
        return False
    return not wanted or any(matches(name, wanted) for name in known)


def matches(name: str, patterns: list[str]) -> bool:
    """Whether a name is one of some patterns, or fits their wildcards."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def split_exclusions(values: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the values that are wanted, and those that are excluded, without their signs."""
    wanted: list[str] = []
    unwanted: list[str] = []
    for value in values:
        if value.startswith(NEGATIONS):
            unwanted.append(value[1:])
        else:
            wanted.append(value)
    return wanted, unwanted
