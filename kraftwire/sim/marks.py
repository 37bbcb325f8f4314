"""Counts the situations that a run reached, so that one that is no longer met is noticed."""

from __future__ import annotations

from collections import Counter

__all__ = ["Marks"]


class Marks:
    """Situations by name, and how often each was reached."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def hit(self, situation: str) -> None:
        """Note that a situation was reached."""
        self.counts[situation] += 1
