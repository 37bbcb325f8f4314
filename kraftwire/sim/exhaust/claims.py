"""Checks one step of a replica, and returns what it claims of the rest of the cluster.

The same step is checked once; its claims are checked against every history in which it is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from kraftwire.sim.timeless import facts
from kraftwire.sim.timeless.book import Book
from kraftwire.sim.timeless.cluster_history import ClusterHistory
from kraftwire.sim.timeless.shelves import Shelf
from kraftwire.sim.voters import Key, Voters

__all__ = ["Claim", "Commit", "check_claims", "claims_of"]

# The name of a method of `ClusterHistory`, and its arguments.
Claim = tuple[Any, ...]

# The id of a leader that has committed batches, and the voters that it counted.
Commit = tuple[int, Voters]

# Logs are compared as they are, not as they were; only replicas send requests for votes.
_UNUSED = ("writes", "campaigned", "stores_vote")


class _Claims:
    """Stands for a history, and keeps what it is told."""

    def __init__(self) -> None:
        self.made: list[Claim] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(self._keep, name)

    def advances(self, *claim: Any) -> bool:
        """Keep the claim; a leader's high watermark may commit batches."""
        self._keep("advances", *claim)
        _, _, leader_epoch, entries = claim
        return leader_epoch >= 0 and bool(entries)

    def _keep(self, *claim: Any) -> None:
        if claim[0] not in _UNUSED and claim not in self.made:
            self.made.append(claim)


def claims_of(own: int, shelf: Shelf, seen: list[facts.Fact]) -> tuple[Claim, ...]:
    """Check the facts of a step, and update the replica's shelf; return the claims.

    Raises: Violation.
    """
    claims = _Claims()
    book = Book(shelf.sets[0][1], cast("ClusterHistory", claims))
    book.shelves[own] = shelf
    book.see(own, seen)
    return tuple(claims.made)


def check_claims(
    known: ClusterHistory, claims: tuple[Claim, ...]
) -> tuple[ClusterHistory, Commit | None]:
    """Return the history after a step, and what was committed by it. Raises: Violation.

    Whether a commit is durable on a majority depends on the other replicas, and is not checked.
    """
    history, commit = known.copy(), None
    is_new = False
    for name, *claim in claims:
        if name == "commits_on":
            own, voters, _ = cast("tuple[int, Voters, tuple[Key, ...]]", tuple(claim))
            commit = (own, voters) if is_new else commit
        else:
            is_new = getattr(history, name)(*claim)
    history.forget_decided_votes()
    return history, commit
