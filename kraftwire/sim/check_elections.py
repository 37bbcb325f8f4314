"""Checks elections: leaders, votes, and that everything sent was durable before.

Invariants S1-S4, S17-S20. Called as things happen; nothing here knows a core or a message.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kraftwire.sim import describe
from kraftwire.sim.invariants import Violation
from kraftwire.sim.voters import Key, Voters, members


@dataclass(frozen=True, slots=True)
class Stored:
    """The durable contents of the quorum-state file. -1 for no leader and for no vote."""

    epoch: int = 0
    leader: int = -1
    vote: int = -1


@dataclass(slots=True)
class ElectionChecks:
    """The ledger of a cluster's elections.

    `voters` are the ids that were ever in a set, `keys` the replicas that nodes are at present.
    """

    voters: set[int]
    keys: dict[int, Key] = field(default_factory=dict)
    stored: dict[int, Stored] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    votes: dict[int, dict[Key, int]] = field(default_factory=dict)

    def persisted(self, node: int, now: Stored) -> None:
        """The durable quorum state of a node changed, or was read at a start. S1, S2, S3."""
        old = self.stored.get(node, Stored())
        if now.epoch < old.epoch:
            raise Violation("S2", f"{node} stored epoch {now.epoch} after {old.epoch}")
        if now.epoch == old.epoch and old.vote >= 0 and now.vote != old.vote:
            # A leader may forget its own vote: it grants none in an epoch that it led.
            is_leaders = now.vote < 0 and now.leader == node
            if not is_leaders:
                raise Violation(
                    "S3",
                    f"{node} changed its vote in epoch {now.epoch}",
                    f"stored before: {old}",
                    f"stored now: {now}",
                )
        self.stored[node] = now
        if now.vote >= 0:
            self._vote(node, now.epoch, now.vote)
        if now.leader >= 0:
            self.leader_known(node, now.epoch, now.leader)
        if now.leader == node:
            # The only voter votes and leads in one step: its vote is never stored separately.
            self._vote(node, now.epoch, node)

    def forget(self, node: int, key: Key) -> None:
        """Record that a node's disk was replaced by an empty one, which makes it another replica.
        """
        self.stored.pop(node, None)
        self.keys[node] = key

    def vote_of(self, node: int, epoch: int) -> int:
        """Return the candidate that a node has durably voted for in an epoch, -1 for none."""
        stored = self.stored.get(node)
        return stored.vote if stored is not None and stored.epoch == epoch else -1

    def settled(self, node: int, epoch: int) -> None:
        """Check the epoch of a node that has handled an event. S2."""
        stored = self.stored[node].epoch
        if epoch != stored:
            raise Violation("S2", f"{node} is in epoch {epoch} but has stored {stored}")

    def sends(self, node: int, epoch: int) -> None:
        """Check a request or answer that names its sender's epoch, before it is sent. S2."""
        stored = self.stored[node].epoch
        if epoch > stored:
            raise Violation("S2", f"{node} speaks of epoch {epoch} but has stored {stored}")

    def leader_known(self, node: int, epoch: int, leader: int) -> None:
        """Check that a node may regard another as the leader of an epoch. S1, S18."""
        known = self.leaders.get(epoch)
        if known is None:
            self._check_voter(leader, f"leads epoch {epoch}, says {node}")
            self.leaders[epoch] = leader
        elif known != leader:
            raise Violation(
                "S1",
                f"epoch {epoch} has two leaders",
                f"known before: leader {known}",
                f"says {node}: leader {leader}",
            )

    def names_leader(self, node: int, epoch: int, leader: int) -> None:
        """Check an answer that names a leader. S1, S20."""
        stored = self.stored[node].epoch
        if epoch > stored:
            raise Violation("S20", f"{node} names leader {leader} of {epoch}, stored {stored}")
        self.leader_known(node, epoch, leader)

    def asks_for_vote(
        self, node: int, epoch: int, voter: int, *, pre_vote: bool, voters: Voters
    ) -> None:
        """Check a Vote request of a node with these voters. S2, S3, S18, S19."""
        if voter not in [member[0] for member in voters]:
            raise Violation("S18", f"{voter} is asked by {node} to vote, and is not a voter")
        stored = self.stored[node]
        if epoch != stored.epoch:
            name = "S19" if pre_vote else "S2"
            raise Violation(name, f"{node} campaigns for {epoch} but has stored {stored.epoch}")
        if not pre_vote:
            if stored.vote != node:
                raise Violation("S3", f"{node} campaigns for {epoch} without its own durable vote")
            self._vote(node, epoch, node)

    def grants(self, node: int, epoch: int, candidate: int) -> None:
        """Check a standard vote before it is sent. S3."""
        self._vote(node, epoch, candidate)
        stored = self.stored[node]
        if stored.epoch != epoch or stored.vote != candidate:
            raise Violation(
                "S3", f"{node} grants epoch {epoch} to {candidate} but has stored {stored}"
            )

    def compares(self, own: tuple[int, int], candidate_log: tuple[int, int], node: int) -> None:
        """Check a vote or pre-vote by the (last epoch, end offset) of both logs. S4."""
        if candidate_log < own:
            raise Violation(
                "S4",
                f"{node} grants to a log that is older than its own",
                f"its log ends with (epoch, offset) {own}",
                f"the log of the candidate with {candidate_log}",
            )

    def stands(self, node: int, *, may_stand: bool) -> None:
        """Check a node that campaigns.

        S18: it is a voter, or its removal is not known to be committed.
        """
        if not may_stand:
            raise Violation("S18", f"{node} is not a voter and campaigns")

    def elected(self, node: int, epoch: int, voters: Voters) -> None:
        """A node leads; these voters are in force at it. S1, S17: a majority of them voted for it,
        directory ids included, and no other votes count."""
        self.leader_known(node, epoch, node)
        votes = self.votes.get(epoch, {})
        granting = members(voters, [key for key, voted in votes.items() if voted == node])
        if 2 * len(granting) <= len(voters):
            raise Violation(
                "S17",
                f"{node} leads epoch {epoch} by the votes of a minority",
                f"voted for {node}: {describe.voters(granting)}",
                f"voters in force at {node}: {describe.voters(voters)}",
            )

    def pre_voted(self, node: int, before: Stored, *, was_due: bool = False) -> None:
        """A node has handled a pre-vote of an epoch that it knows. S19: nothing durable changed.

        `was_due`: its own timer had expired, which the same step notices: a resigned node then
        begins another epoch, whatever the request is.
        """
        now = self.stored[node]
        if now != before and not (was_due and now.epoch > before.epoch):
            raise Violation("S19", f"a pre-vote changed {before} to {self.stored[node]} at {node}")

    def _vote(self, node: int, epoch: int, candidate: int) -> None:
        votes = self.votes.setdefault(epoch, {})
        voted = votes.setdefault(self.keys.get(node, (node, b"")), candidate)
        if voted != candidate:
            raise Violation(
                "S3",
                f"{node} voted twice in epoch {epoch}",
                f"first vote: for {voted}",
                f"second vote: for {candidate}",
            )

    def _check_voter(self, node: int, what: str) -> None:
        if node not in self.voters:
            raise Violation("S18", f"{node} is not a voter and {what}")
