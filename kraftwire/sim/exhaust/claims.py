"""Checks a step of one replica by the rules of `timeless`, and claims what the rest must confirm.

What a replica did is looked at by the same code as there, once for every step that is different.
What concerns other replicas, or the past, comes out as claims.
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
    """A replica is said to lead an epoch."""

    epoch: int
    leader: int


class Voted(NamedTuple):
    """A vote was stored or given."""

    epoch: int
    voter: int
    candidate: int


class Elected(NamedTuple):
    """A replica leads, by the voters in its log."""

    epoch: int
    leader: int
    voters: Voters
    log: Log


class Advanced(NamedTuple):
    """The high watermark advanced, to where; `epoch` is that of the leader, -1 elsewhere."""

    known: int
    offset: int
    epoch: int
    voters: Voters
    log: Log
    durable: int


class Cut(NamedTuple):
    """A log was cut, in an epoch."""

    end: int
    epoch: int
    log: Log


class Acked(NamedTuple):
    """A client was told that a batch is committed."""

    base: int
    epoch: int


Claim = Leads | Voted | Elected | Advanced | Cut | Acked


class _Everything(set[tuple[int, int]]):
    """Every replica that got a vote has asked for it: requests come from replicas only."""

    def __contains__(self, _: object) -> bool:
        return True


def judge(own: int, shelf: Shelf, seen: list[facts.Fact]) -> list[Claim]:
    """Check what a replica did, and keep its shelf. Raises: Violation."""
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
    # Votes come before what they lead to.
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
