"""The progress of the replicas in a leader's epoch.

From it follow the high watermark, the check that a majority still fetches, and the order of
preferred successors. It knows neither log nor network.

Source: Kafka's `LeaderState`; R-REP-1 to R-REP-6, R-HW-1 to R-HW-5, R-CQ-1, R-CQ-2; KIP-836.
"""

from __future__ import annotations

from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.wire.fast import ZERO_UUID

# Observers whose progress a leader keeps. A cluster has some hundreds of brokers; a client that
# makes up replica ids evicts the one that has not fetched for longest, which then returns.
OBSERVERS_MAX = 4096


class ReplicaProgress:
    """The progress of one replica as its leader knows it; -1 for unknown."""

    __slots__ = (
        "end_offset",
        "key",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
    )

    def __init__(self, key: ReplicaKey) -> None:
        """Start without any knowledge (R-REP-1)."""
        self.key = key
        self.end_offset = -1
        self.last_fetch_ms = -1
        self.last_caught_up_ms = -1
        self.last_fetch_leader_end = -1


class LeaderProgress:
    """The replicas of one leader epoch.

    `voters` by id, in the order of the set; `observers` by key. `quorum_deadline_ms` is when the
    leader must resign unless a majority fetches first, None for a single voter. `own` is the
    leader's entry, in either; `leader_end` its log end, -1 before its first append.
    """

    __slots__ = (
        "_heard",
        "_key",
        "_needed",
        "_quorum_timeout_ms",
        "_silence_ms",
        "_start_offset",
        "leader_end",
        "observers",
        "own",
        "quorum_deadline_ms",
        "voters",
    )

    def __init__(
        self,
        key: ReplicaKey,
        voters: VoterSet,
        epoch_start_offset: int,
        now_ms: int,
        fetch_timeout_ms: int,
    ) -> None:
        """Begin an epoch in which no replica has fetched yet."""
        self._key = key
        self._start_offset = epoch_start_offset
        self._quorum_timeout_ms = fetch_timeout_ms * 3 // 2
        self._silence_ms = fetch_timeout_ms // 2
        self._heard: set[ReplicaProgress] = set()
        self.own = ReplicaProgress(key)
        self.leader_end = -1
        self.voters: dict[int, ReplicaProgress] = {}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {key: self.own}
        self.quorum_deadline_ms: int | None = None
        self._needed = 0
        self.voters_changed(voters, now_ms)

    def voters_changed(self, voters: VoterSet, now_ms: int) -> None:
        """Adopt another voter set (R-REP-5); all progress is kept.

        Order: recompute the high watermark afterwards.
        """
        old, observers = self.voters, self.observers
        self.voters = {voter.key.id: self._adopt(voter) for voter in voters}
        for voter_id, state in old.items():
            if self.voters.get(voter_id) is not state:
                if state is self.own:
                    state.key = self._key
                observers[state.key] = state
        leads_as_voter = self.voters.get(self._key.id) is self.own
        self._needed = len(voters) // 2 + (0 if leads_as_voter else 1)
        self._heard = {state for state in self._heard if self.voters.get(state.key.id) is state}
        if leads_as_voter and len(voters) == 1:
            self.quorum_deadline_ms = None
        elif self.quorum_deadline_ms is None:
            self._restart_quorum_timer(now_ms)
        else:
            self._check_quorum(now_ms)

    def is_caught_up(self, key: ReplicaKey, now_ms: int, within_ms: int) -> bool:
        """Return whether an observer is caught up and has fetched recently (R-REP-7)."""
        state = self.observers.get(key)
        return (
            state is not None
            and state is not self.own
            and state.last_caught_up_ms > 0
            and state.last_fetch_ms > now_ms - within_ms
        )

    def note_log_end(self, end_offset: int) -> None:
        """Record the leader's log end offset, against which followers are measured (R-REP-3)."""
        self.leader_end = end_offset

    def note_durable_end(self, flushed_offset: int) -> bool:
        """Record how much of the leader's log is durable: its share in the high watermark (D3).

        Returns: whether the high watermark may advance.
        """
        if flushed_offset <= self.own.end_offset:
            return False
        self.own.end_offset = flushed_offset
        return self.voters.get(self._key.id) is self.own

    def record_fetch(self, key: ReplicaKey, position: int, now_ms: int) -> bool:
        """Record a valid fetch of another replica at this position (R-REP-2, R-REP-4, R-CQ-2).

        Returns: whether the high watermark may advance, because a voter's position changed.
        """
        state = self.voters.get(key.id)
        is_voter = state is not None and _matches(state.key, key)
        if state is None or not is_voter:
            state = self.observers.get(key) or self._new_observer(key)
        leader_end = self.leader_end
        if leader_end >= 0:
            caught_up_ms = -1
            if position >= leader_end:
                caught_up_ms = now_ms
            elif 0 < state.last_fetch_leader_end <= position:
                # It has all that the leader had at its previous fetch, so it was caught up at that
                # time.
                caught_up_ms = state.last_fetch_ms
            if caught_up_ms > state.last_caught_up_ms:
                state.last_caught_up_ms = caught_up_ms
            state.last_fetch_leader_end = leader_end
        if now_ms > state.last_fetch_ms:
            state.last_fetch_ms = now_ms
        moved = state.end_offset != position
        state.end_offset = position
        if not is_voter:
            return False
        self._count(state, now_ms)
        return moved

    def record_activity(self, key: ReplicaKey, now_ms: int) -> None:
        """Record another sign of life of a voter: FetchSnapshot or UpdateRaftVoter (R-CQ-2)."""
        state = self.voters.get(key.id)
        if state is not None and state is not self.own and _matches(state.key, key):
            self._count(state, now_ms)

    def high_watermark(self, current: int) -> int:
        """Return the high watermark: never below `current`, and only within the leader's own epoch.

        -1 while unknown. Records of older epochs are committed only together with one of this
        epoch, even if a majority has them (R-HW-1, R-HW-2).
        """
        voters = self.voters
        if not voters:
            return current
        ends = sorted([state.end_offset for state in voters.values()], reverse=True)
        mark = ends[len(ends) // 2]
        return mark if mark > current and mark > self._start_offset else current

    def silent_voters(self, now_ms: int) -> list[ReplicaKey]:
        """Return the other voters that have not fetched for half a fetch timeout (R-BEG-1)."""
        return [
            state.key
            for state in self.voters.values()
            if state is not self.own
            and (state.last_fetch_ms < 0 or now_ms - state.last_fetch_ms >= self._silence_ms)
        ]

    def preferred_successors(self) -> list[ReplicaKey]:
        """Return the other voters. Order: by log end offset, highest first, then by key
        (R-END-2)."""
        others = [state for state in self.voters.values() if state is not self.own]
        others.sort(key=lambda state: (-state.end_offset, state.key))
        return [state.key for state in others]

    def drop_observers(self, now_ms: int, timeout_ms: int) -> None:
        """Forget observers that have not fetched for this long, but never the leader (R-REP-6)."""
        self.observers = {
            key: state
            for key, state in self.observers.items()
            if state is self.own or now_ms - state.last_fetch_ms < timeout_ms
        }

    def _adopt(self, voter: Voter) -> ReplicaProgress:
        """Return the progress of a member of a new set, which was a voter or an observer before."""
        state = self.voters.get(voter.key.id)
        if state is not None and (voter.matches(state.key) or _matches(state.key, voter.key)):
            state.key = voter.key
            return state
        for key in self.observers:
            if voter.matches(key):
                state = self.observers.pop(key)
                state.key = voter.key
                return state
        return ReplicaProgress(voter.key)

    def _new_observer(self, key: ReplicaKey) -> ReplicaProgress:
        if len(self.observers) >= OBSERVERS_MAX:
            others = [state for state in self.observers.values() if state is not self.own]
            del self.observers[min(others, key=lambda state: state.last_fetch_ms).key]
        state = self.observers[key] = ReplicaProgress(key)
        return state

    def _count(self, voter: ReplicaProgress, now_ms: int) -> None:
        self._heard.add(voter)
        if len(self._heard) >= self._needed:
            self._check_quorum(now_ms)

    def _check_quorum(self, now_ms: int) -> None:
        if len(self._heard) >= self._needed and self.quorum_deadline_ms is not None:
            self._restart_quorum_timer(now_ms)

    def _restart_quorum_timer(self, now_ms: int) -> None:
        self._heard.clear()
        self.quorum_deadline_ms = now_ms + self._quorum_timeout_ms


def _matches(entry: ReplicaKey, key: ReplicaKey) -> bool:
    """Return whether a replica is that of an entry with the same id (R-ID-2)."""
    directory_id = entry.directory_id
    return directory_id == ZERO_UUID or directory_id == key.directory_id
