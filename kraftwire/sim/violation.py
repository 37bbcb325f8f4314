"""What a checker raises."""

from __future__ import annotations

from kraftwire.errors import InvariantError

__all__ = ["Violation"]


class Violation(InvariantError):
    """A cluster did what no cluster may do.

    `invariant` is the name in the list of invariants; `odds` are the things that contradict each
    other, one a line: two batches, two votes, two leaders. A line names a node after the word
    `node`, `leader`, `candidate` or `voter`, so that the timeline can prefer these nodes.
    """

    def __init__(self, invariant: str, detail: str, *odds: str) -> None:
        self.invariant = invariant
        self.detail = detail
        self.odds = odds
        super().__init__(f"{invariant}: {detail}")
