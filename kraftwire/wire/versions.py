"""A range of message versions: a small module, since every generated module imports it."""

from __future__ import annotations

ANY_VERSION = 32767


class Versions:
    """An inclusive range of versions; empty if `low` is above `high`."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Versions):
            return NotImplemented
        return (self.low, self.high) == (other.low, other.high)

    def __hash__(self) -> int:
        return hash((self.low, self.high))

    def __repr__(self) -> str:
        return f"Versions({self.low}, {self.high})"

    def __str__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.high == ANY_VERSION:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"
