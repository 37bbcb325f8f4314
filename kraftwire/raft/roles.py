"""The six roles of a replica and what each remembers.

Owns no rules: who becomes what and when stands in `transitions`. Times are absolute milliseconds.
An observer is an Unattached or Follower that is not in the voter set.

Source: Kafka's `EpochState` and its implementations; R-ROLE-1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from kraftwire.raft.accumulator import Accumulator
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.progress import LeaderProgress
from kraftwire.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

__all__ = [
    "Candidate",
    "ChangeKind",
    "Follower",
    "Leader",
    "Nominee",
    "PendingChange",
    "Prospective",
    "Resigned",
    "Role",
    "Unattached",
    "Votes",
    "election_state",
]


class Votes:
    """The answers to one election, own vote included. Order: voters as in the set."""

    __slots__ = ("_answers", "majority")

    def __init__(self, voters: VoterSet, own: ReplicaKey) -> None:
        """Ask these voters; the own vote is granted from the start (R-VOTE-11)."""
        self._answers: dict[ReplicaKey, bool | None] = {
            voter.key: True if voter.matches(own) else None for voter in voters
        }
        self.majority = voters.majority

    def record(self, voter: ReplicaKey, granted: bool) -> None:
        """Note an answer; one of a replica that was not asked does not count."""
        if voter in self._answers:
            self._answers[voter] = granted

    @property
    def granting(self) -> list[ReplicaKey]:
        """Who granted."""
        return [voter for voter, answer in self._answers.items() if answer]

    @property
    def unanswered(self) -> list[ReplicaKey]:
        """Who has not answered yet."""
        return [voter for voter, answer in self._answers.items() if answer is None]

    @property
    def is_won(self) -> bool:
        """Whether a majority granted."""
        return len(self.granting) >= self.majority

    @property
    def is_lost(self) -> bool:
        """Whether no majority can come about any more."""
        answers = self._answers.values()
        return sum(answer is not False for answer in answers) < self.majority


@dataclass(slots=True)
class Unattached:
    """Has no leader to follow. `deadline_ms` is None for an observer."""

    NAME: ClassVar[str] = "unattached"
    epoch: int
    leader_id: int = -1
    leader_endpoints: tuple[Endpoint, ...] = ()
    voted: ReplicaKey | None = None
    deadline_ms: int | None = None


@dataclass(slots=True)
class Prospective:
    """Asks whether it would be elected, without any change of epoch (KIP-996)."""

    NAME: ClassVar[str] = "prospective"
    epoch: int
    votes: Votes
    deadline_ms: int
    leader_id: int = -1
    leader_endpoints: tuple[Endpoint, ...] = ()
    voted: ReplicaKey | None = None


@dataclass(slots=True)
class Candidate:
    """Has voted for itself and asks for votes.

    `retry_ms` is set once the election is lost. `has_pre_votes` says whether a majority was ready
    to vote for it: a peer may be too old to be asked.
    """

    NAME: ClassVar[str] = "candidate"
    epoch: int
    votes: Votes
    deadline_ms: int
    voted: ReplicaKey
    retry_ms: int | None = None
    has_pre_votes: bool = True
    leader_id: ClassVar[int] = -1
    leader_endpoints: ClassVar[tuple[Endpoint, ...]] = ()


class ChangeKind(Enum):
    """What is done to the voter set."""

    ADD = "add"
    REMOVE = "remove"
    UPDATE = "update"


@dataclass(slots=True)
class PendingChange:
    """The one change of the voter set that is under way (R-VC-1).

    It is probed (a new voter only), appended, committed and replied to. `offset` is that of its
    record, -1 before it is appended; `token` that of the request that still waits for an answer,
    None once it has one. `waits_for_commit` says whether the answer waits for the commit.
    """

    kind: ChangeKind
    voter: Voter
    deadline_ms: int
    token: int | None
    waits_for_commit: bool = True
    offset: int = -1


@dataclass(slots=True)
class Leader:
    """Leads its epoch.

    `begin_due_ms` is when silent voters are looked for next. `reported` are the voters of a static
    set that told their directory ids, listeners and versions, by id, this one included: what an
    upgrade to kraft.version 1 needs (R-UPD-6). `probe_due_ms` is when a successor may be asked
    again whether it answers; `successor` is the one that did. `opens_with_voters` says that the
    epoch's first batch states the voters.
    """

    NAME: ClassVar[str] = "leader"
    epoch: int
    epoch_start_offset: int
    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    progress: LeaderProgress
    accumulator: Accumulator
    begin_due_ms: int
    reported: dict[int, Voter] = field(default_factory=dict)
    change: PendingChange | None = None
    probe_due_ms: int = 0
    probe_count: int = 0
    successor: ReplicaKey | None = None
    opens_with_voters: bool = False
    voted: ClassVar[ReplicaKey | None] = None


@dataclass(slots=True)
class Resigned:
    """Has led its epoch, and tells the voters that it does so no longer."""

    NAME: ClassVar[str] = "resigned"
    epoch: int
    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    deadline_ms: int
    preferred: list[ReplicaKey] = field(default_factory=list)
    unacknowledged: list[ReplicaKey] = field(default_factory=list)
    voted: ClassVar[ReplicaKey | None] = None


@dataclass(slots=True)
class Follower:
    """Replicates from a leader whose address it knows.

    `fetch_timeout_ms` is how long it waits for an answer before it stands for election.
    `snapshot_claims` counts how often the leader named a snapshot since it sent some of one.
    """

    NAME: ClassVar[str] = "follower"
    epoch: int
    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    fetch_deadline_ms: int
    update_due_ms: int
    fetch_timeout_ms: int
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    has_updated: bool = False
    has_asked_for_software: bool = False
    snapshot_claims: int = 0


Role = Unattached | Prospective | Candidate | Leader | Resigned | Follower
Nominee = Prospective | Candidate


def election_state(role: Role) -> ElectionState:
    """What the quorum-state file says of a role (R-ROLE-1)."""
    return ElectionState(role.epoch, role.leader_id, role.voted)
