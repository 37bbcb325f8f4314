"""Version ranges as Kafka's schemas spell them: ``3``, ``0-4``, ``12+`` and ``none``.

Owns the arithmetic that merging two releases needs; knows nothing of messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kraftwire.errors import UsageError

# The largest int16: an open range such as 12+ ends here.
OPEN = 32767
_RANGE = re.compile(r"(\d+)(?:(\+)|-(\d+))?")


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; empty if `low` is above `high`."""

    low: int
    high: int

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return both if both else EMPTY

    def __or__(self, other: Versions) -> Versions:
        """The union.

        Raises: UsageError if there would be a gap between the two, which schemas cannot express.
        """
        if not self or not other:
            return self or other
        if self.high + 1 < other.low or other.high + 1 < self.low:
            raise UsageError(f"versions {self} and {other} leave a gap between them")
        return Versions(min(self.low, other.low), max(self.high, other.high))

    def without(self, other: Versions) -> tuple[int, ...]:
        """Return the single versions of this bounded range that the other one lacks."""
        return tuple(version for version in range(self.low, self.high + 1) if version not in other)

    def opened(self, valid: Versions) -> Versions:
        """Return the part inside `valid`, with an open end if it reaches the newest valid version.
        """
        inside = self & valid
        return Versions(inside.low, OPEN) if inside and inside.high == valid.high else inside

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == OPEN:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


EMPTY = Versions(0, -1)


def parse_versions(text: str) -> Versions:
    """Read a range.

    Raises: UsageError if the text has none of the four forms.
    """
    if text == "none":
        return EMPTY
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"versions {text!r}: expected N, N-M, N+ or none")
    low, is_open, high = match.groups()
    if is_open:
        return Versions(int(low), OPEN)
    return Versions(int(low), int(high or low))
