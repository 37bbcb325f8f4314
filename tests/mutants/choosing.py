"""Which mutants are tried: all, or those with a text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.mutants.mutant import Mutant


def matching(mutants: Sequence[Mutant], texts: Sequence[str]) -> list[Mutant]:
    """The mutants that have one of the texts in their name or ring; all if there is no text."""
    return [m for m in mutants if not texts or any(text in f"{m.name} {m.ring}" for text in texts)]
