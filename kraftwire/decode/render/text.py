"""Small pieces of text: times, durations, sizes, names with remarks, colour.

Owns how such values look in every output for people.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from kraftwire.printable import printable

__all__ = [
    "BOLD",
    "DIM",
    "GREEN",
    "RED",
    "YELLOW",
    "count_text",
    "duration_text",
    "listed",
    "paint",
    "size_text",
    "utc_text",
    "words",
]

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_KIBI = 1024


def paint(text: str, style: str, *, is_wanted: bool) -> str:
    """The text in a colour of a terminal, if colour is wanted; it is printable then."""
    return f"\x1b[{style}m{printable(text)}\x1b[0m" if is_wanted else text


def utc_text(milliseconds: int) -> str:
    """A time of Kafka as ISO 8601, or the number alone where no calendar reaches."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration_text(seconds: float) -> str:
    """A duration with a unit that suits it."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def size_text(size: int) -> str:
    """A number of bytes with a unit that suits it."""
    value = float(size)
    for unit in _SIZE_UNITS:
        if value < _KIBI or unit == _SIZE_UNITS[-1]:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= _KIBI
    return f"{size} B"


def count_text(count: int, noun: str) -> str:
    """A count and its noun, in the plural where needed."""
    if count == 1:
        return f"1 {noun}"
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{count:,} {plural}"


def words(head: str, remarks: Iterable[str]) -> str:
    """A text with remarks in brackets, if there are any."""
    inside = ", ".join(remarks)
    return f"{head} ({inside})" if inside else head


def listed(values: Iterable[object]) -> str:
    """Values with commas between them, or a word for none."""
    return ", ".join(map(str, values)) or "none"
