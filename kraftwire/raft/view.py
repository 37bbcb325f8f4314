"""What others may see of a Raft core: nodes that describe it, simulators that check it."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.raft.metrics import raft_metrics
from kraftwire.raft.roles import Leader
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import Endpoint, ReplicaKey, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch

__all__ = ["RaftView"]


class RaftView:
    """A read-only view of a replica. Offsets and ids are -1 where nothing is known."""

    def __init__(self, state: RaftState) -> None:
        """Show this state, as it changes."""
        self._state = state

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
        """The leader of the epoch, as far as it is known."""
        return self._state.role.leader_id

    @property
    def leader_endpoints(self) -> tuple[Endpoint, ...]:
        """Where the leader can be reached, under the names of its listeners."""
        return self._state.role.leader_endpoints

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """Where the leader can be reached under the first controller listener's name."""
        listener = self._state.config.listener
        return next((at for at in self.leader_endpoints if at.listener == listener), None)

    @property
    def voted(self) -> ReplicaKey | None:
        """Whom this replica voted for in the epoch."""
        return self._state.role.voted

    @property
    def voters(self) -> VoterSet:
        """The voter set in force."""
        return self._state.voters

    @property
    def foreign_voters(self) -> frozenset[int]:
        """The voters that are known to be another implementation, as far as they have answered or
        asked."""
        is_foreign = self._state.is_foreign
        return frozenset(voter.key.id for voter in self._state.voters if is_foreign(voter.key))

    @property
    def is_voter(self) -> bool:
        """Whether this replica is in the voter set."""
        return self._state.is_voter

    @property
    def kraft_version(self) -> int:
        """The kraft.version in force."""
        return self._state.history.kraft_version

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, None while it is not known."""
        return self._state.cluster_id

    @property
    def high_watermark(self) -> int:
        """The end of what this role knows to be committed."""
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
        """The end of what is durable."""
        return self._state.log.flushed_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record."""
        return self._state.log.last_epoch

    @property
    def epoch_start_offset(self) -> int:
        """Where the leader's epoch begins; -1 if this replica does not lead."""
        role = self._state.role
        return role.epoch_start_offset if type(role) is Leader else -1

    @property
    def snapshots(self) -> Sequence[OffsetAndEpoch]:
        """The snapshots that are there, the bootstrap checkpoint aside. Order: ascending."""
        return self._state.log.snapshots

    @property
    def voters_offset(self) -> int | None:
        """Where the voter set in force stands in the log; None for the static configuration."""
        return self._state.history.last_voters_offset

    def metrics(self) -> dict[str, float | int | str]:
        """The values of Kafka's metrics group `raft-metrics`, by name."""
        return raft_metrics(self._state)
