"""Checks a step of one replica by the rules of `timeless`.

The same code checks each distinct step once. Whatever depends on other replicas or on the past is
returned as claims, which are checked against the whole cluster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kraftwire.sim.timeless import facts
from kraftwire.sim.timeless.book import Book
from kraftwire.sim.timeless.entries import Entry
from kraftwire.sim.timeless.shelves import Shelf
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import Voters

__all__ = ["Acked", "Advanced", "Claim", "Cut", "Elected", "Leads", "Voted", "judge"]

Log = tuple[Entry, ...]


class Leads(NamedTuple):
    """The claim that a replica leads an epoch."""

    epoch: int
    leader: int


class Voted(NamedTuple):
    """The claim that a vote was stored or granted."""

    epoch: int
    voter: int
    candidate: int


class Elected(NamedTuple):
    """The claim that a replica was elected by the voters in its log."""

    epoch: int
    leader: int
    voters: Voters
    log: Log


class Advanced(NamedTuple):
    """The claim that the high watermark advanced; `epoch` is the leader's, -1 on other replicas."""

    known: int
    offset: int
    epoch: int
    voters: Voters
    log: Log
    durable: int


class Cut(NamedTuple):
    """The claim that a log was truncated in an epoch."""

    end: int
    epoch: int
    log: Log


class Acked(NamedTuple):
    """The claim that a client was told that a batch is committed."""

    base: int
    epoch: int


Claim = Leads | Voted | Elected | Advanced | Cut | Acked


class _Everything(set[tuple[int, int]]):
    """Stands for all requests for votes: only replicas send any, so every vote was requested."""

    def __contains__(self, _: object) -> bool:
        return True


def judge(own: int, shelf: Shelf, seen: list[facts.Fact]) -> list[Claim]:
    """Check the facts of a step, and update the replica's shelf; return the claims.

    Raises: Violation.
    """
    book = Book(shelf.sets[0][1])
    book.shelves[own] = shelf
    book.votes.campaigns = _Everything()
    claims: list[Claim] = []
    for fact in seen:
        kind = type(fact)
        if kind is facts.Elected:
            claims.append(Elected(fact.epoch, own, shelf.voters, tuple(shelf.log)))  # type: ignore[union-attr]
        elif kind is facts.Advanced:
            claims.append(_advanced(shelf, fact))
        elif kind is facts.Acked:
            claims.append(Acked(fact.base, fact.epoch))  # type: ignore[union-attr]
        else:
            if kind is facts.Truncated:
                claims.append(Cut(fact.end, fact.epoch, tuple(shelf.log)))  # type: ignore[union-attr]
            book.see(own, [fact])
    # Votes come before their consequences.
    votes = [Voted(at, key[0], whom) for (key, at), whom in book.votes.votes.items()]
    return [*votes, *(Leads(*one) for one in book.votes.leaders.items()), *claims]


def _advanced(shelf: Shelf, fact: Any) -> Advanced:
    own, offset, known = shelf.key[0], fact.offset, shelf.high_watermark
    if offset < known:
        raise Violation("S8", f"{own} lowers its {known} to {offset}")
    if offset > shelf.end:
        raise Violation("S8", f"{own} has high watermark {offset}, log end {shelf.end}")
    shelf.high_watermark = offset
    return Advanced(
        known, offset, fact.leader_epoch, shelf.voters, tuple(shelf.log), shelf.durable
    )
