"""The part of a cluster's past that is needed to judge what happens next.

Immutable, so that states of one past share it: leaders, votes of undecided epochs, what is
committed and in which epoch that was done. S1, S5, S7, S8, S9, S10, S11, S12, S17.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kraftwire.sim import words
from kraftwire.sim.exhaust.claims import Acked, Advanced, Claim, Cut, Elected, Leads, Log, Voted
from kraftwire.sim.timeless.entries import Entry
from kraftwire.sim.violation import Violation

__all__ = ["Past", "check_durable", "learn"]


class Past(NamedTuple):
    """`leaders` are (epoch, leader), `votes` (epoch, voter, candidate), `committed` (batch,
    epoch in which it was committed). Order: by epoch, by offset."""

    leaders: tuple[tuple[int, int], ...] = ()
    votes: tuple[tuple[int, int, int], ...] = ()
    committed: tuple[tuple[Entry, int], ...] = ()

    @property
    def frontier(self) -> int:
        """The offset below which all batches are committed."""
        return self.committed[-1][0].end if self.committed else 0

    def at(self, base: int) -> Entry | None:
        """Return the batch that is committed at an offset."""
        return next((entry for entry, _ in self.committed if entry.base == base), None)


def learn(past: Past, own: int, claims: Sequence[Claim]) -> Past:
    """Return the past after a step of a replica. Raises: Violation."""
    for claim in claims:
        kind = type(claim)
        if kind is Leads:
            past = _leads(past, own, *claim)
        elif kind is Voted:
            past = _voted(past, claim)  # type: ignore[arg-type]
        elif kind is Elected:
            past = _elected(past, claim)  # type: ignore[arg-type]
        elif kind is Advanced:
            past = _advanced(past, own, claim)  # type: ignore[arg-type]
        elif kind is Cut:
            _cut(past, own, claim)  # type: ignore[arg-type]
        elif kind is Acked:
            _acked(past, own, claim)  # type: ignore[arg-type]
    return past


def _leads(past: Past, own: int, epoch: int, leader: int) -> Past:
    known = dict(past.leaders)
    if known.setdefault(epoch, leader) != leader:
        raise Violation(
            "S1",
            f"epoch {epoch} has two leaders",
            f"known before: leader {known[epoch]}",
            f"says {own}: leader {leader}",
        )
    return past._replace(leaders=tuple(sorted(known.items())))


def _voted(past: Past, claim: Voted) -> Past:
    if claim in past.votes or claim.epoch in dict(past.leaders):
        return past
    for epoch, voter, candidate in past.votes:
        if (epoch, voter) == claim[:2]:
            raise Violation(
                "S3",
                f"{voter} votes twice in epoch {epoch}",
                f"first vote: for {candidate}",
                f"second vote: for {claim.candidate}",
            )
    vote = (claim.epoch, claim.voter, claim.candidate)
    return past._replace(votes=tuple(sorted((*past.votes, vote))))


def _elected(past: Past, claim: Elected) -> Past:
    """Check a new leader.

    S17: a majority of the voters in its log elected it; S5: its log has all that older epochs
    committed.
    """
    epoch, leader = claim.epoch, claim.leader
    past = _leads(past, leader, epoch, leader)
    ids = [key[0] for key in claim.voters]
    by = {voter for at, voter, whom in past.votes if (at, whom) == (epoch, leader)} & set(ids)
    # A candidate's own vote, which is not stored by a step that makes it the leader.
    by |= {leader} & set(ids)
    if 2 * len(by) <= len(ids):
        raise Violation(
            "S17", f"{leader} leads epoch {epoch} by the votes of {sorted(by)} among {ids}"
        )
    for entry, at in past.committed:
        if at < epoch and entry not in claim.log:
            end = claim.log[-1].end if claim.log else 0
            raise Violation(
                "S5",
                f"{leader} leads epoch {epoch} without all that is committed",
                f"committed in epoch {at}: {words.batch(entry.data)}",
                f"log of {leader}: {_log(claim.log)}, ends at {end}",
            )
    # The leader is known from now on: these votes no longer matter.
    return past._replace(votes=tuple(vote for vote in past.votes if vote[0] != epoch))


def _log(log: Log) -> str:
    return "; ".join(words.batch(entry.data) for entry in log) or "empty"


def _advanced(past: Past, own: int, claim: Advanced) -> Past:
    """Check a new high watermark.

    S7: what is committed stays; S8: followers are not ahead; S10: a leader commits through a batch
    of its own epoch.
    """
    new = [entry for entry in claim.log if claim.known < entry.end <= claim.offset]
    if new and new[-1].end != claim.offset:
        raise Violation("S8", f"{own} has high watermark {claim.offset} inside of a batch")
    for entry in new:
        known = past.at(entry.base)
        if known is not None and known != entry:
            raise Violation(
                "S7",
                f"{own} takes other records at {entry.base} for committed",
                f"committed: {words.batch(known.data)}",
                f"at {own}: {words.batch(entry.data)}",
            )
        if known is None and claim.epoch < 0:
            raise Violation("S8", f"{own} knows {claim.offset}, committed is {past.frontier}")
    if claim.epoch < 0 or claim.offset <= past.frontier:
        return past
    fresh = [entry for entry in new if entry.base >= past.frontier]
    if not fresh or fresh[0].base != past.frontier:
        raise Violation("S7", f"{own} commits up to {claim.offset} after {past.frontier}")
    if fresh[-1].epoch != claim.epoch:
        raise Violation(
            "S10",
            f"{own} commits through a batch of an older epoch",
            f"leader {own} of epoch {claim.epoch}, high watermark {claim.offset}",
            f"last committed batch: {words.batch(fresh[-1].data)}",
        )
    committed = (*past.committed, *((entry, claim.epoch) for entry in fresh))
    return past._replace(committed=committed)


def check_durable(past: Past, own: int, claim: Advanced, logs: Sequence[tuple[int, Log]]) -> None:
    """Check that what was just committed is durable on a majority of the leader's voters. S9.

    `logs` are (id, durable batches) of all replicas. Raises: Violation.
    """
    last = past.committed[-1][0]
    ids = {key[0] for key in claim.voters}
    holding = {one for one, durable in logs if last in durable} & ids
    if 2 * len(holding) <= len(ids):
        raise Violation(
            "S9",
            f"{own} commits what a minority has: {words.batch(last.data)}",
            f"voters in force at {own}: {words.voters(claim.voters)}",
            f"of these have it durably: {sorted(holding)}",
        )


def _cut(past: Past, own: int, claim: Cut) -> None:
    """Check a truncation.

    S11: nothing that is dropped was committed by an epoch up to the replica's.
    """
    for entry, at in past.committed:
        if entry.end > claim.end and at <= claim.epoch and entry in claim.log:
            raise Violation(
                "S11",
                f"{own} in epoch {claim.epoch} drops committed {entry.base}",
                f"committed in epoch {at}: {words.batch(entry.data)}",
            )


def _acked(past: Past, own: int, claim: Acked) -> None:
    """Check an acknowledgement. S12: the client's batch is the one committed at its offset."""
    known = past.at(claim.base)
    if known is None or known.epoch != claim.epoch:
        raise Violation(
            "S12", f"{own} acknowledged ({claim.epoch}, {claim.base}), which is not there"
        )
