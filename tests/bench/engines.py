"""Both of our engines among the contestants: the one in C, if available, and Python."""

from __future__ import annotations

from kraftwire import engine
from tests.support.suite.engines import use

__all__ = ["OURS", "PURE", "enter"]

PURE = "pure"

# Our contestants, by the engine that they run on.
OURS = {"engine" if name == engine.C else PURE: name for name in engine.available()}


def enter(contestant: str) -> bool:
    """Switch to the engine of a contestant of ours; returns whether that changed anything."""
    name = OURS.get(contestant.partition(" ")[0])
    if name is None or name == engine.name():
        return False
    use(name)
    return True
