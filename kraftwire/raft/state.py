"""Everything that a Raft core remembers, and the effects of the step it is in.

Owned by `RaftCore`; the modules of this package are functions over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kraftwire.raft.config import RaftConfig
from kraftwire.raft.effects import (
    Destination,
    Effect,
    ElectionState,
    Note,
    PersistQuorumState,
    SendRequest,
)
from kraftwire.raft.histories import VoterHistory
from kraftwire.raft.listeners import Listeners
from kraftwire.raft.log_picture import LogPicture
from kraftwire.raft.parked import ParkedFetches
from kraftwire.raft.peers import Peers
from kraftwire.raft.ports import StoredState
from kraftwire.raft.roles import Leader, Role, Unattached
from kraftwire.raft.voters import Endpoint, VoterSet
from kraftwire.wire.message import Message

__all__ = ["RaftState", "Sent"]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request in flight: to whom it went, and whether it asks for a vote."""

    destination: Destination
    is_vote: bool


class RaftState:
    """The memory of one replica.

    Shape: `high_watermark` is what the present role knows (-1 unknown), `committed` the highest
    one that this run ever knew, below which nothing is truncated (S11).
    """

    def __init__(self, config: RaftConfig, stored: StoredState, random: Random) -> None:
        timers = config.timers
        self.config = config
        self.random = random
        self.cluster_id = config.cluster_id
        self.now = 0
        self.wall_offset_ms = 0
        self.newest_timestamp = 0
        self.effects: list[Effect] = []
        self._persist: PersistQuorumState | None = None
        self.log = LogPicture(stored.log)
        self.history = VoterHistory(config.voters, stored.log.control)
        self.peers = Peers(timers.retry_backoff_ms, timers.retry_backoff_max_ms)
        self.parked = ParkedFetches()
        self.listeners = Listeners()
        self.role: Role = Unattached(stored.election.epoch)
        self.persisted: ElectionState | None = None
        self._judged: VoterSet | None = None  # the voter set that `_is_voter` was found out for
        self._is_voter = self._is_only_voter = False
        self._located: VoterSet | None = None  # the voter set that `_destinations` are those of
        self._destinations: dict[int, Destination | None] = {}
        self.high_watermark = -1
        self.committed = -1
        self.in_flight: dict[int, Sent] = {}
        self.next_request_id = 1
        self.flush_generation = 0
        self.flush_asked = self.log.end_offset
        self.software: dict[int, str] = {}
        self.snapshot_needed = self.log.start_offset > 0
        self.shutdown_deadline_ms: int | None = None
        self.is_stopped = False
        self.resign_asked = ""
        self.has_told_last_epoch = False

    @property
    def voters(self) -> VoterSet:
        """The voter set in force: the latest one in the log, committed or not (S16)."""
        return self.history.current

    @property
    def is_voter(self) -> bool:
        """Whether this replica is in the voter set."""
        if self.history.current is not self._judged:
            self._judge()
        return self._is_voter

    def _judge(self) -> None:
        """Find out once for every voter set what it makes of this replica."""
        self._judged = current = self.history.current
        self._is_voter = current.is_voter(self.config.key)
        self._is_only_voter = self._is_voter and len(current) == 1

    @property
    def is_only_voter(self) -> bool:
        """Whether this replica decides alone."""
        if self.history.current is not self._judged:
            self._judge()
        return self._is_only_voter

    @property
    def is_shutting_down(self) -> bool:
        """Whether this replica is leaving."""
        return self.shutdown_deadline_ms is not None

    @property
    def leader(self) -> Leader | None:
        """The present role if it is that of the leader."""
        role = self.role
        return role if type(role) is Leader else None

    def emit(self, effect: Effect) -> None:
        """Ask for something."""
        self.effects.append(effect)

    def begin_step(self, now_ms: int, wall_ms: int | None) -> None:
        """Begin with nothing asked for, at this time."""
        if now_ms > self.now:
            self.now = now_ms
        self.wall_offset_ms = 0 if wall_ms is None else wall_ms - self.now
        self.effects = []
        self._persist = None

    def wall_time(self, at_ms: int) -> int:
        """The wall clock's time of a moment of the core's clock, as it would be read now."""
        return at_ms + self.wall_offset_ms

    def timestamp(self) -> int:
        """The time for records that are written now: never earlier than that of records before."""
        self.newest_timestamp = max(self.newest_timestamp, self.now + self.wall_offset_ms)
        return self.newest_timestamp

    def persist(self, wanted: ElectionState) -> None:
        """Have the quorum-state file say this before anything else of this step happens.

        A step that persists twice persists once: what it comes to is written before whatever it
        says to others, and a crash in between leaves a vote or an epoch that nobody heard of.
        """
        self.persisted = wanted
        if self._persist is None:
            voters = tuple(voter.key.id for voter in self.voters)
            self._persist = PersistQuorumState(wanted, self.history.kraft_version, voters)
            self.effects.append(self._persist)
        else:
            self._persist.state = wanted

    def note(self, text: str, level: str = "info", *, key: str = "") -> None:
        """Say something for the log. `key` names the kind of line, whatever its text says."""
        self.effects.append(Note(level, text, key))

    def random_timeout(self) -> int:
        """A time in [T, 2T) from now, T being the election timeout: the jitter of elections."""
        timeout = self.config.timers.election_timeout_ms
        return self.now + (timeout + self.random.randrange(timeout) if timeout else 0)

    def random_patience(self) -> int:
        """How long a follower waits for its leader: the fetch timeout and up to a fifth of the
        election timeout, so that the followers of a dead leader do not all stand at once."""
        timers = self.config.timers
        return timers.fetch_timeout_ms + self.random.randrange(timers.election_timeout_ms // 5 + 1)

    def destination(self, endpoint: Endpoint | None, node_id: int) -> Destination | None:
        """Where to send what is meant for a node, if its address is known."""
        return Destination(node_id, endpoint.host, endpoint.port) if endpoint else None

    def voter_destination(self, voter_id: int) -> Destination | None:
        """The address of a voter under the first controller listener's name (R-NET-5)."""
        current = self.history.current
        if current is not self._located:
            self._located = current
            listener = self.config.listener
            self._destinations = {
                voter.key.id: self.destination(voter.endpoint(listener), voter.key.id)
                for voter in current
            }
        return self._destinations.get(voter_id)

    def leader_destination(self) -> Destination | None:
        """The address of the leader under the first controller listener's name."""
        role = self.role
        for endpoint in role.leader_endpoints:
            if endpoint.listener == self.config.listener:
                return Destination(role.leader_id, endpoint.host, endpoint.port)
        return None

    def send(self, destination: Destination, message: Message) -> None:
        """Send a request to a node whose connection is ready."""
        request_id = self.next_request_id
        self.next_request_id += 1
        self.in_flight[request_id] = Sent(destination, message.NAME == "VoteRequest")
        self.peers.sent(destination.id, request_id, self.now)
        timeout = self.config.timers.request_timeout_ms
        self.effects.append(SendRequest(request_id, destination, message, timeout))
