"""Which mutants are tried: all, those with a text, or different ones every day."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from tests.mutants.mutant import Mutant


def matching(mutants: Sequence[Mutant], texts: Sequence[str]) -> list[Mutant]:
    """The mutants that have one of the texts in their name or ring; all if there is no text."""
    return [m for m in mutants if not texts or any(text in f"{m.name} {m.ring}" for text in texts)]


def of_the_day(mutants: Sequence[Mutant], count: int, day: int) -> list[Mutant]:
    """This many of them for a day, different ones for the next.

    Those of a day begin where those of the day before end, or just before. The step has no factor
    in common with their number, so each is tried within a few days, and each is first on some day:
    a time limit never leaves out the same one every day.
    """
    total = len(mutants)
    if not total:
        return []
    count = min(count, total)
    step = next(step for step in range(count, 0, -1) if gcd(step, total) == 1)
    start = day * step % total
    return [*mutants[start:], *mutants[:start]][:count]
