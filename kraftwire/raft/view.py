"""A read-only view of a Raft core, for nodes that describe it and simulators that check it.

`RaftView.metrics` are those of the core under Kafka's names, group `raft-metrics`. The driver of
the core, which has a clock, measures rates and latencies.

Source: Kafka's `KafkaRaftMetrics`; R-MET-1.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.roles import Candidate, Leader, Resigned, Role
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch

_NOBODY = ReplicaKey(-1)


class RaftView:
    """A read-only view of a replica. Unknown offsets and ids are -1."""

    def __init__(self, state: RaftState) -> None:
        self._state = state

    @property
    def standing(self) -> tuple[int, int, int, VoterSet]:
        """Epoch, log end offset, high watermark and voter set, read at once by checks of a step."""
        state = self._state
        return state.role.epoch, state.log.end_offset, state.high_watermark, state.history.current

    @property
    def role(self) -> str:
        """The role's name, as in `RoleChanged`."""
        return self._state.role.NAME

    @property
    def epoch(self) -> int:
        """The leader epoch."""
        return self._state.role.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch, if known."""
        return self._state.role.leader_id

    @property
    def leader_endpoints(self) -> tuple[Endpoint, ...]:
        """The leader's endpoints, by listener name."""
        return self._state.role.leader_endpoints

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """The leader's endpoint for the first controller listener."""
        listener = self._state.config.listener
        return next((at for at in self.leader_endpoints if at.listener == listener), None)

    @property
    def voted(self) -> ReplicaKey | None:
        """The replica that this one voted for in the epoch."""
        return self._state.role.voted

    @property
    def voters(self) -> VoterSet:
        """The voter set in effect."""
        return self._state.history.current

    @property
    def foreign_voters(self) -> frozenset[int]:
        """The voters that are known to be another implementation."""
        is_foreign = self._state.is_foreign
        return frozenset(voter.key.id for voter in self._state.voters if is_foreign(voter.key))

    @property
    def is_voter(self) -> bool:
        """Whether this replica is in the voter set."""
        return self._state.is_voter

    @property
    def kraft_version(self) -> int:
        """The kraft.version in effect."""
        return self._state.history.kraft_version

    @property
    def cluster_id(self) -> str | None:
        """The cluster id, None while unknown."""
        return self._state.cluster_id

    @property
    def high_watermark(self) -> int:
        """The high watermark of the current role."""
        return self._state.high_watermark

    @property
    def start_offset(self) -> int:
        """The first offset in the log."""
        return self._state.log.start_offset

    @property
    def end_offset(self) -> int:
        """The log end offset."""
        return self._state.log.end_offset

    @property
    def flushed_offset(self) -> int:
        """The end of the durable part of the log."""
        return self._state.log.flushed_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record."""
        return self._state.log.last_epoch

    @property
    def epoch_start_offset(self) -> int:
        """The first offset of the leader's epoch; -1 if this replica does not lead."""
        role = self._state.role
        return role.epoch_start_offset if type(role) is Leader else -1

    @property
    def replica_count(self) -> int:
        """How many replicas this node follows the progress of; 0 if it does not lead."""
        role = self._state.role
        if type(role) is not Leader:
            return 0
        return len(role.progress.voters) + len(role.progress.observers)

    @property
    def snapshots(self) -> Sequence[OffsetAndEpoch]:
        """The stored snapshots, without the bootstrap checkpoint. Order: ascending."""
        return self._state.log.snapshots

    @property
    def voters_offset(self) -> int | None:
        """The offset of the voter set in effect; None for the static configuration."""
        return self._state.history.last_voters_offset

    def metrics(self) -> dict[str, float | int | str]:
        """The values of Kafka's metrics group `raft-metrics`, by name."""
        return _raft_metrics(self._state)


def _raft_metrics(state: RaftState) -> dict[str, float | int | str]:
    """Return the metrics that follow from the state, by name."""
    role = state.role
    vote = _vote(state, role)
    found: dict[str, float | int | str] = {
        "current-state": _state_name(state),
        "current-leader": role.leader_id,
        "current-vote": vote.id,
        "current-vote-directory-id": vote.directory_text,
        "current-epoch": role.epoch,
        "high-watermark": state.high_watermark,
        "log-end-offset": state.log.end_offset,
        "log-end-epoch": state.log.last_epoch,
        "number-of-voters": len(state.voters),
        "number-unknown-voter-connections": 0,
        "ignored-static-voters": int(state.history.has_own_voters and len(state.config.voters) > 0),
    }
    if type(role) is Leader:
        found["number-of-observers"] = len(role.progress.observers)
        found["uncommitted-voter-change"] = int(role.change is not None)
    return found


def _state_name(state: RaftState) -> str:
    """Return the value of current-state; a resigned leader and an idle observer are unattached."""
    role = state.role
    if type(role) is Resigned:
        return "unattached"
    if not state.is_voter and role.NAME == "follower":
        return "observer"
    if role.NAME in ("prospective", "unattached") and role.voted is not None:
        return f"{role.NAME}-voted"
    return role.NAME


def _vote(state: RaftState, role: Role) -> ReplicaKey:
    if isinstance(role, Leader | Candidate):
        return state.config.key
    return role.voted or _NOBODY
