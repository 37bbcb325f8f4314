"""What admin calls return. Shape: uuids are texts in Kafka's form, 22 characters of base64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraftwire.raft.voters import Endpoint
from kraftwire.records.offsets import OffsetAndEpoch

__all__ = [
    "NO_DIRECTORY_ID",
    "ClusterInfo",
    "FeatureInfo",
    "LogInfo",
    "NodeInfo",
    "PartitionInfo",
    "QuorumInfo",
    "ReplicaInfo",
    "TopicInfo",
    "VersionRange",
]

# The zero uuid, which stands for a directory that is not known.
NO_DIRECTORY_ID = "A" * 22


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A broker or controller and where it can be reached."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    def __str__(self) -> str:
        return f"node {self.id} at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """A cluster's id and nodes.

    Shape: `controller_id` is None if no controller is active or known. Of a cluster that was
    asked through its brokers it is a broker's id, which Kafka chooses by chance.
    """

    cluster_id: str
    controller_id: int | None
    nodes: tuple[NodeInfo, ...]

    def node(self, node_id: int) -> NodeInfo | None:
        """The node of an id, if it is known."""
        return next((node for node in self.nodes if node.id == node_id), None)


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """How far a voter or observer is.

    Units: timestamps are milliseconds since the epoch by the leader's clock; None if the leader
    does not know them, or its version does not tell. `log_end_offset` is -1 if not known.
    """

    id: int
    directory_id: str = NO_DIRECTORY_ID
    log_end_offset: int = -1
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    """The metadata quorum as its leader sees it.

    Shape: `high_watermark` is -1 if a new leader does not know it yet; `endpoints` are those of
    the voters, empty where the leader's version does not tell them.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaInfo, ...]
    observers: tuple[ReplicaInfo, ...]
    endpoints: Mapping[int, tuple[Endpoint, ...]] = field(default_factory=dict)

    @property
    def leader(self) -> ReplicaInfo | None:
        """The leader's own entry; None for a leader that was removed from the voters."""
        return next((voter for voter in self.voters if voter.id == self.leader_id), None)

    def lag(self, replica: ReplicaInfo) -> int | None:
        """Records that a replica lacks. Shape: None if that cannot be told."""
        if self.leader is None or self.leader.log_end_offset < 0:
            return None
        return self.leader.log_end_offset - replica.log_end_offset

    def lag_ms(self, replica: ReplicaInfo) -> int | None:
        """How long ago a replica was caught up, counted from when the leader was.

        Units: milliseconds. Shape: None if either time is not known; 0 for the leader.
        """
        if replica == self.leader:
            return 0
        mine = self.leader.last_caught_up_ms if self.leader else None
        if mine is None or replica.last_caught_up_ms is None:
            return None
        return mine - replica.last_caught_up_ms


@dataclass(frozen=True, slots=True)
class LogInfo:
    """The leader's metadata log and its newest snapshot.

    `start_offset` is the first offset that it still has. `snapshot` are the offset behind the last
    record of the snapshot and that record's epoch, None if there is no snapshot but that of the
    formatting.
    """

    start_offset: int
    high_watermark: int
    snapshot: OffsetAndEpoch | None


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Lowest and highest level of a feature."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class FeatureInfo:
    """Levels of features: those in force and those that the asked node could run.

    Shape: `epoch` is the offset of the metadata log that `finalized` is from; None if unknown.
    """

    finalized: Mapping[str, int]
    supported: Mapping[str, VersionRange]
    epoch: int | None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition: who leads it and who has copies."""

    index: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic. Shape: `topic_id` is the zero uuid where the broker's version has none."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]
