"""The six roles of a replica and what each remembers.

The changes of role are in `transitions`. Times are absolute milliseconds. An observer is an
Unattached or Follower that is not in the voter set.

Source: Kafka's `EpochState` and its implementations; R-ROLE-1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.accumulator import Accumulator
from kraftwire.raft.effects import Destination, ElectionState
from kraftwire.raft.progress import LeaderProgress
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet


class Votes:
    """The answers in one election, including this node's own vote. Order: that of the voter set."""

    __slots__ = ("_answers", "majority")

    def __init__(self, voters: VoterSet, own: ReplicaKey) -> None:
        """Ask these voters; this node's own vote is granted from the start (R-VOTE-11)."""
        self._answers: dict[ReplicaKey, bool | None] = {
            voter.key: True if voter.matches(own) else None for voter in voters
        }
        self.majority = voters.majority

    def record(self, voter: ReplicaKey, granted: bool) -> None:
        """Record an answer; answers of other replicas do not count."""
        if voter in self._answers:
            self._answers[voter] = granted

    @property
    def granting(self) -> list[ReplicaKey]:
        """The voters that granted their vote."""
        return [voter for voter, answer in self._answers.items() if answer]

    @property
    def unanswered(self) -> list[ReplicaKey]:
        """The voters that have not answered yet."""
        return [voter for voter, answer in self._answers.items() if answer is None]

    @property
    def is_won(self) -> bool:
        """Whether a majority granted its vote."""
        return len(self.granting) >= self.majority

    @property
    def is_lost(self) -> bool:
        """Whether a majority is no longer possible."""
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
    """Asks whether it would be elected, without changing the epoch (KIP-996)."""

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

    `retry_ms` is set once the election is lost. `has_pre_votes` is True if a majority granted
    pre-votes; False if a peer was too old for them.
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
    """The kind of change of the voter set."""

    ADD = "add"
    REMOVE = "remove"
    UPDATE = "update"


@dataclass(slots=True)
class PendingChange:
    """The pending change of the voter set (R-VC-1).

    It is probed (a new voter only), appended, committed and replied to. `offset` is that of its
    record, -1 before it is appended; `token` that of the unanswered request, None once it is
    answered. `waits_for_commit` is True if the answer waits for the commit. `probed_ms` is when a
    new voter was asked.
    """

    kind: ChangeKind
    voter: Voter
    deadline_ms: int
    token: int | None
    waits_for_commit: bool = True
    offset: int = -1
    probed_ms: int = 0


@dataclass(slots=True)
class Leader:
    """Leads its epoch.

    `begin_due_ms` is the next check for silent voters. `reported` are the voters of a static set
    that have reported their directory ids, listeners and versions, by id, including this one: an
    upgrade to kraft.version 1 needs them (R-UPD-6). `change` is the one in the log, `candidates`
    are new voters that are being asked, or have just failed, by address, the oldest first;
    `updated_ms` is when each voter's entry was last updated, by id. `probe_due_ms` is when to probe
    a successor again; `successor` is the one that answered. `opens_with_voters` is True if the
    epoch's first batch has the voters.
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
    candidates: dict[Destination, PendingChange] = field(default_factory=dict)
    updated_ms: dict[int, int] = field(default_factory=dict)
    probe_due_ms: int = 0
    probe_count: int = 0
    successor: ReplicaKey | None = None
    opens_with_voters: bool = False
    voted: ClassVar[ReplicaKey | None] = None


@dataclass(slots=True)
class Resigned:
    """Has led its epoch, and announces to the voters that it no longer does."""

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
    `snapshot_since_ms` is when the leader first named a snapshot instead of sending records, -1 if
    it has not; since then it has sent `snapshot_bytes` of snapshots.
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
    has_probed_software: bool = False
    snapshot_since_ms: int = -1
    snapshot_bytes: int = 0


Role = Unattached | Prospective | Candidate | Leader | Resigned | Follower
Nominee = Prospective | Candidate


def election_state(role: Role) -> ElectionState:
    """Return the contents of the quorum-state file for a role (R-ROLE-1)."""
    return ElectionState(role.epoch, role.leader_id, role.voted)
