"""The state of a Raft core, and the effects of its current step.

`RaftCore` owns it; the modules of this package are functions over it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum, auto
from random import Random
from typing import Generic, NamedTuple, TypeVar

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.raft.addresses import Addresses
from kraftwire.raft.config import Handover, RaftConfig
from kraftwire.raft.effects import (
    Destination,
    DiscardSnapshot,
    Effect,
    ElectionState,
    Note,
    PersistQuorumState,
    SendRequest,
    VotersChanged,
)
from kraftwire.raft.epoch_rate_limit import EpochRateLimit
from kraftwire.raft.histories import VoterHistory
from kraftwire.raft.listeners import Listeners
from kraftwire.raft.log_view import LogView
from kraftwire.raft.parked import ParkedFetches
from kraftwire.raft.peers import Peers
from kraftwire.raft.ports import StoredState
from kraftwire.raft.roles import Leader, Role, Unattached
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message

# Records of a leader whose clock is further ahead than this do not advance the timestamps of later
# ones.
CLOCK_LEAD_MAX_MS = 3_600_000

_Message = TypeVar("_Message", bound=Message)


class Purpose(IntEnum):
    """The purpose of a request; a number, since the handlers of answers are looked up by it."""

    VOTE = auto()
    BEGIN = auto()
    END = auto()
    FETCH = auto()
    FETCH_SNAPSHOT = auto()
    UPDATE = auto()
    JOIN = auto()  # to become a voter, or to have this node's old directory removed first
    PROBE_NEW_VOTER = auto()  # ApiVersions, before a voter is added
    PROBE_SUCCESSOR = auto()  # ApiVersions, before the leadership is handed over


# They hold up nothing else, and no back-off follows: they do not count as requests in flight.
PROBES = (Purpose.PROBE_NEW_VOTER, Purpose.PROBE_SUCCESSOR)


class SentRequest(NamedTuple):
    """A request in flight: its destination, its purpose, and when it was sent."""

    destination: Destination
    purpose: Purpose
    at_ms: int


class LastMessage(Generic[_Message]):
    """The last message of a kind and the values in it: it is sent again unless they change.

    Order: a message is not changed after it was sent.
    """

    __slots__ = ("about", "message")

    def __init__(self) -> None:
        self.about: tuple[object, ...] = ()
        self.message: _Message | None = None


@dataclass(slots=True)
class Download:
    """A snapshot that is being fetched from the leader of an epoch.

    `size` is -1 until the leader reports it; `parts` counts its answers. `beginning` has the first
    bytes until there are enough to check. `is_finishing` is set once all bytes have arrived and the
    file is being checked. Units: bytes.
    """

    id: OffsetAndEpoch
    leader_id: int
    epoch: int
    position: int = 0
    size: int = -1
    parts: int = 0
    beginning: bytes = b""
    is_finishing: bool = False

    def is_of(self, leader_id: int, epoch: int) -> bool:
        """Return whether this leader of this epoch named it."""
        return (self.leader_id, self.epoch) == (leader_id, epoch)


class RaftState:
    """The memory of one replica.

    `high_watermark` is that of the current role (-1 if unknown), `committed` the highest one since
    startup, below which nothing is truncated (S11): a snapshot holds only committed records.
    `download_failures` counts the downloads that failed in this epoch since one succeeded; none
    begins before `download_pause_ms`.
    `announced` is the highest one that has been reported. `is_removed` is set if this replica was
    in the voter set and a later set lacks it: it was removed deliberately.
    """

    def __init__(self, config: RaftConfig, stored: StoredState, random: Random) -> None:
        timers = config.timers
        newest = stored.log.snapshots[-1] if stored.log.snapshots else None
        snapshot = (newest.id.offset, newest.control) if newest is not None else None
        self.config = config
        self.random = random
        self.cluster_id = config.cluster_id
        self.now = 0
        self.wall_offset_ms = 0
        self.newest_timestamp = 0
        self.effects: list[Effect] = []
        self._persist: PersistQuorumState | None = None
        self.log = LogView(stored.log)
        self.history = VoterHistory(config.voters, stored.log.control, snapshot)
        self.peers = Peers(timers.retry_backoff_ms, timers.retry_backoff_max_ms)
        self.parked = ParkedFetches()
        self.listeners = Listeners()
        self.role: Role = Unattached(stored.election.epoch)
        self.persisted: ElectionState | None = None
        self._membership_of: VoterSet | None = None  # the set that `_is_voter` is about
        self._is_voter = self._is_only_voter = False
        self.is_removed = False
        self._voters_offset = self.history.last_voters_offset
        self.addresses = Addresses(config)
        self.high_watermark = -1
        latest = self.log.latest_snapshot
        self.committed = latest.offset if latest is not None else -1
        self.announced = -1
        self.epoch_rate_limit = EpochRateLimit()
        self.in_flight: dict[int, SentRequest] = {}
        self.fetch = LastMessage[FetchRequest]()
        self.empty_answer = LastMessage[FetchResponse]()
        self.next_request_id = 1
        self.flush_generation = 0
        self.requested_flush_end = self.log.end_offset
        self.download: Download | None = None
        self.download_failures = 0
        self.download_pause_ms = 0
        self.unfinished_snapshot: OffsetAndEpoch | None = None
        self._foreign: dict[ReplicaKey, bool] = {}
        self._claims: dict[ReplicaKey, bool] = {}
        self.shutdown_deadline_ms: int | None = None
        self.is_stopped = False
        self.resign_reason = ""
        self.forbidden_reason = ""
        self.has_reported_last_epoch = False

    # ---- voters

    @property
    def voters(self) -> VoterSet:
        """The voter set in effect: the latest one in the log, committed or not (S16)."""
        return self.history.current

    @property
    def is_voter(self) -> bool:
        """Whether this replica is in the voter set."""
        if self.history.current is not self._membership_of:
            self._update_membership()
        return self._is_voter

    def _update_membership(self) -> None:
        """Compute whether this replica is a voter, once for every voter set."""
        self._membership_of = current = self.history.current
        self._is_voter = current.is_voter(self.config.key)
        self._is_only_voter = self._is_voter and len(current) == 1

    @property
    def may_stand(self) -> bool:
        """Whether this replica may stand for election; none may that was forbidden to lead.

        A voter may, and so may one whose own removal is in its log and not known to be committed.
        It may be the only one with that record, and then the only one that can be elected: of two
        voters, the other one lacks it and needs both votes. If Kafka's leader ends before the
        record is replicated, such a quorum never has a leader again. Source: Ongaro's thesis,
        4.2.2.
        """
        if self.history.current is not self._membership_of:
            self._update_membership()
        if self.forbidden_reason:
            return False
        if self._is_voter:
            return True
        where, snapshot = self.history.last_voters_offset, self.log.latest_snapshot
        known = max(self.committed, snapshot.offset if snapshot is not None else 0)
        is_open = where is not None and where >= known
        return is_open and self.history.previous.is_voter(self.config.key)

    @property
    def is_only_voter(self) -> bool:
        """Whether this replica decides alone."""
        if self.history.current is not self._membership_of:
            self._update_membership()
        return self._is_only_voter

    @property
    def own_entry(self) -> Voter | None:
        """This replica's entry in the voter set."""
        return self.voters.get(self.config.key.id) if self.is_voter else None

    def voters_changed(self, was_voter: bool) -> None:
        """Apply another voter set or kraft.version (S16, R-VC-2)."""
        current = self.voters
        leader = self.leader
        if leader is not None:
            leader.progress.voters_changed(current, self.now)
        keys = {voter.key for voter in current}
        self._foreign = {key: found for key, found in self._foreign.items() if key in keys}
        self._claims = {key: said for key, said in self._claims.items() if key in keys}
        where, before = self.history.last_voters_offset, self._voters_offset
        self._voters_offset = where
        # Configured voters have no directory ids: a log that names others has removed none of them.
        is_later = where is not None and before is not None and where > before
        self.is_removed = not self.is_voter and (self.is_removed or (was_voter and is_later))
        self.emit(
            VotersChanged(
                current,
                self.history.kraft_version,
                -1 if where is None else where,
                self.is_voter,
            )
        )
        if self.is_voter is not was_voter:
            text = "is now a voter" if self.is_voter else "is no longer a voter"
            ids = ", ".join(str(voter.key.id) for voter in current)
            self.note(f"this node {text}; the voters are {ids}", key="voter")

    def record_software(self, key: ReplicaKey, is_foreign: bool) -> None:
        """Remember whether a voter is another implementation, as its own endpoint answered.

        Bounded by the voter set.
        """
        voter = self.voters.get(key.id)
        if voter is not None and voter.matches(key):
            self._foreign[voter.key] = is_foreign
            self._claims.pop(voter.key, None)

    def record_claimed_software(self, key: ReplicaKey, is_foreign: bool) -> None:
        """Record what software a request in a voter's name claims.

        Any peer may claim anything: a claim is only a reason to ask that voter.
        """
        voter = self.voters.get(key.id)
        if voter is None or not voter.matches(key):
            return
        if self._foreign.get(voter.key, False) == is_foreign:
            self._claims.pop(voter.key, None)
        else:
            self._claims[voter.key] = is_foreign

    @property
    def unverified(self) -> Collection[ReplicaKey]:
        """Return the voters whose claimed software differs from what is known."""
        return self._claims.keys()

    def is_foreign(self, voter: ReplicaKey) -> bool | None:
        """Return whether a voter is another implementation; None if unknown."""
        return self._foreign.get(voter)

    @property
    def knows_foreign_voters(self) -> bool:
        """Return whether any voter is known to be another implementation."""
        return True in self._foreign.values()

    # ---- role

    @property
    def is_shutting_down(self) -> bool:
        """Whether this replica is leaving."""
        return self.shutdown_deadline_ms is not None

    @property
    def leader(self) -> Leader | None:
        """The current role if this node leads."""
        role = self.role
        return role if type(role) is Leader else None

    # ---- a step

    def begin_step(self, now_ms: int, wall_ms: int | None) -> None:
        """Begin a step without effects, at this time."""
        if now_ms > self.now:
            self.now = now_ms
        self.wall_offset_ms = 0 if wall_ms is None else wall_ms - self.now
        self.effects = []
        self._persist = None

    def emit(self, effect: Effect) -> None:
        """Add an effect."""
        self.effects.append(effect)

    def persist(self, wanted: ElectionState) -> None:
        """Write the quorum-state file before any other effect of this step.

        If a step persists twice, only the final state is written, before anything is sent. A crash
        in between leaves a vote or an epoch that no other node has heard of.
        """
        self.persisted = wanted
        if self._persist is None:
            voters = tuple(voter.key.id for voter in self.voters)
            self._persist = PersistQuorumState(wanted, self.history.kraft_version, voters)
            self.effects.append(self._persist)
        else:
            self._persist.state = wanted

    def note(self, text: str, level: str = "info", *, key: str = "") -> None:
        """Add a log line. `key` is the kind of line, independent of its text."""
        self.effects.append(Note(level, text, key))

    def drop_download(self) -> None:
        """Discard an unfinished download, unless its file is already being checked."""
        current = self.download
        if current is not None and not current.is_finishing:
            if current.position:
                self.effects.append(DiscardSnapshot(current.id))
            self.download = None

    # ---- time

    def wall_time(self, at_ms: int) -> int:
        """Convert a time of the core's clock to the wall clock, as of now."""
        return at_ms + self.wall_offset_ms

    def timestamp(self) -> int:
        """Return the timestamp for new records: never earlier than that of the last ones."""
        self.newest_timestamp = max(self.newest_timestamp, self.now + self.wall_offset_ms)
        return self.newest_timestamp

    def saw_timestamp(self, timestamp: int) -> None:
        """Record the timestamp of records in the log: later records must not be older.

        One that is far ahead of the wall clock comes from a wrong clock and is ignored, because it
        would make all later timestamps wrong too.
        """
        if self.newest_timestamp < timestamp <= self.wall_time(self.now) + CLOCK_LEAD_MAX_MS:
            self.newest_timestamp = timestamp

    def random_timeout(self) -> int:
        """Return a random time in [T, 2T) from now, where T is the election timeout."""
        timeout = self.config.timers.election_timeout_ms
        return self.now + timeout + self.random.randrange(timeout)

    def draw_fetch_timeout_ms(self) -> int:
        """Draw how long a follower waits for its leader before it stands for election.

        The fetch timeout and up to a fifth of the election timeout, so that the followers of a dead
        leader do not all stand at once; and two fifths more if a voter of another implementation
        could stand instead, to which this node would hand over anyway.
        """
        timers = self.config.timers
        fifth = timers.election_timeout_ms // 5
        wait = timers.fetch_timeout_ms + self.random.randrange(fifth + 1)
        if self.config.handover is not Handover.AUTO:
            return wait
        others = [key for key, foreign in self._foreign.items() if foreign]
        yields = any(key.id != self.role.leader_id for key in others)
        return wait + 2 * fifth if yields else wait

    # ---- requests

    def voter_destination(self, voter: ReplicaKey) -> Destination | None:
        """Return the address of a voter for the first controller listener (R-NET-5)."""
        return self.addresses.voter(self.history.current, voter)

    def leader_destination(self) -> Destination | None:
        """Return the address of the leader for the first controller listener."""
        return self.addresses.leader(self.history.current, self.role)

    def is_ready(self, destination: Destination) -> bool:
        """Return whether a request may be sent to a node now."""
        return self.peers.is_ready(destination.key, self.now)

    def failed(self, sent: SentRequest) -> None:
        """Back off from the node of a failed request."""
        self.peers.failed(sent.destination.key, self.now)

    def send(self, destination: Destination, message: Message, purpose: Purpose) -> None:
        """Send a request to a node whose connection is ready.

        An ApiVersions probe must not hold up anything else: it does not count as a request in
        flight.
        """
        request_id = self.next_request_id
        self.next_request_id += 1
        self.in_flight[request_id] = SentRequest(destination, purpose, self.now)
        if purpose not in PROBES:
            self.peers.sent(destination.key, request_id)
        timeout = self.config.timers.request_timeout_ms
        self.effects.append(SendRequest(request_id, destination, message, timeout))
