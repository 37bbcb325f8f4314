"""Small pieces of text: times, durations, sizes, names with remarks, colour.

Owns how such values look in every output for people.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from kraftwire.printable import printable

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_KIBI = 1024

# Runs of at least this many node ids are shown as a range, and only this many ids or ranges are
# shown; the few nodes of a quorum are listed one by one.
_RUN_MIN = 6
_ID_PARTS_MAX = 10


def paint(text: str, style: str, *, is_wanted: bool) -> str:
    """Return a printable text in a colour of the terminal, or unchanged if colour is not wanted."""
    return f"\x1b[{style}m{printable(text)}\x1b[0m" if is_wanted else text


# Durations from here on are given in hours, and in days.
_LONG_MIN = 120
_LONG_H = 48
# A story that is longer has the time of day at each of its moments.
_CLOCK_S = 3600


def utc_text(milliseconds: int) -> str:
    """Return a timestamp as ISO 8601, or the number alone if it is beyond the calendar."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def double_text(value: float | str) -> str:
    """Return a float64 as Java's `Double.toString` and so Kafka's tools print it; one that is no
    number in JSON comes as the text that stands for it there."""
    from decimal import Decimal  # of few lines

    value = float(value)
    if not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if not value or 1e-3 <= abs(value) < 1e7:
        plain = f"{Decimal(repr(value)):f}"
        return plain if "." in plain else f"{plain}.0"
    # The shortest digits that give the value back, but two of them at least.
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    if "." not in mantissa:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}E{int(exponent)}"


def duration_text(seconds: float) -> str:
    """Return a duration with a suitable unit."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < _LONG_MIN:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    if hours < _LONG_H:
        return f"{hours} h {minutes:02} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def moment_text(time: float, start: float, end: float, *, digits: int = 3) -> str:
    """Return a time of a story: the seconds since its start, and in a long one the time of day.

    Units: seconds since the epoch. With the time of day a moment of a log that spans days can be
    found in the logs of other programs.
    """
    relative = f"{time - start:+.{digits}f}"
    if end - start <= _CLOCK_S:
        return relative
    return f"{relative} {utc_text(math.floor(time) * 1000).replace('.000Z', 'Z')}"


def moment_cell(time: float, start: float, end: float, *, digits: int = 3) -> str:
    """Return a time of a story for a table: in a long one day and time instead of the seconds.

    The title has the year: `clock_remark`.
    """
    if end - start <= _CLOCK_S:
        return moment_text(time, start, end, digits=digits)
    text = utc_text(math.floor(time) * 1000)
    return text[5:19].replace("T", " ") if "T" in text else text


def clock_remark(start: float, end: float) -> str:
    """Return what the title of a table of a long story says about its times."""
    if end - start <= _CLOCK_S:
        return ""
    first, last = utc_text(round(start * 1000))[:4], utc_text(round(end * 1000))[:4]
    return f" (UTC, {first})" if first == last else f" (UTC, {first} to {last})"


def size_text(size: int) -> str:
    """Return a number of bytes with a suitable unit."""
    value = float(size)
    for unit in _SIZE_UNITS:
        if value < _KIBI or unit == _SIZE_UNITS[-1]:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= _KIBI
    return f"{size} B"


def count_text(count: int, noun: str) -> str:
    """Return a count and its noun, in the plural where needed."""
    if count == 1:
        return f"1 {noun}"
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{count:,} {plural}"


def with_remarks(head: str, remarks: Iterable[str]) -> str:
    """Return a text with remarks in brackets, if there are any."""
    inside = ", ".join(remarks)
    return f"{head} ({inside})" if inside else head


def ids_text(ids: Collection[int | str]) -> str:
    """Return the ids of nodes, runs of them as ``4-9``.

    Of very many, the first few and the number of the others.
    """
    numbers = sorted({each for each in ids if isinstance(each, int)})
    names = sorted({each for each in ids if isinstance(each, str)})
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    parts = [(_run_text(*run), run[1] - run[0] + 1) for run in runs]
    parts += [(name, 1) for name in names]
    more = sum(count for _, count in parts[_ID_PARTS_MAX:])
    texts = [text for text, _ in parts[:_ID_PARTS_MAX]]
    return listed(texts) + (f" and {more:,} more" if more else "")


def _run_text(first: int, last: int) -> str:
    if last - first < _RUN_MIN - 1:
        return ", ".join(map(str, range(first, last + 1)))
    return f"{first}-{last}"


def listed(values: Iterable[object]) -> str:
    """Return values separated by commas, or ``none``."""
    return ", ".join(map(str, values)) or "none"
