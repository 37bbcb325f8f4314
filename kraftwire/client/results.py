"""The results of admin calls. Uuids are strings in Kafka's form, 22 characters of base64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.records.offsets import OffsetAndEpoch

# The zero uuid stands for an unknown directory.
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

    `controller_id` is None if no controller is active or known. Brokers report a broker's id
    instead, which Kafka chooses at random.
    """

    cluster_id: str
    controller_id: int | None
    nodes: tuple[NodeInfo, ...]

    def node(self, node_id: int) -> NodeInfo | None:
        """Return the node with an id, None if it is unknown."""
        return next((node for node in self.nodes if node.id == node_id), None)


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """The progress of a voter or observer.

    Units: timestamps are milliseconds since the epoch by the leader's clock; None if the leader
    does not know them, or its version lacks the field. `log_end_offset` is -1 if unknown.
    """

    id: int
    directory_id: str = NO_DIRECTORY_ID
    log_end_offset: int = -1
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    """The metadata quorum as its leader sees it.

    `high_watermark` is -1 if a new leader does not know it yet; `endpoints` are those of the
    voters, empty if the leader's version lacks them.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaInfo, ...]
    observers: tuple[ReplicaInfo, ...]
    endpoints: Mapping[int, tuple[Endpoint, ...]] = field(default_factory=dict)

    @property
    def leader(self) -> ReplicaInfo | None:
        """The leader's entry, among the voters or, once it was removed from them, the observers;
        None if it is in neither.
        """
        replicas = (*self.voters, *self.observers)
        return next((each for each in replicas if each.id == self.leader_id), None)

    def lag(self, replica: ReplicaInfo) -> int | None:
        """Return how many records a replica lacks; None if unknown."""
        if self.leader is None or self.leader.log_end_offset < 0:
            return None
        return self.leader.log_end_offset - replica.log_end_offset

    def lag_ms(self, replica: ReplicaInfo) -> int | None:
        """Return how long ago a replica was caught up, relative to the leader.

        Units: milliseconds. None if either time is unknown; 0 for the leader.
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

    `start_offset` is the first offset that it still has. `snapshot` is the end offset of the
    snapshot with the epoch of its last record, None if there is no snapshot but the one written by
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
    """Levels of features: the finalized ones, and those that the node supports.

    `epoch` is the metadata offset that `finalized` reflects; None if unknown.
    """

    finalized: Mapping[str, int]
    supported: Mapping[str, VersionRange]
    epoch: int | None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition: its leader and its replicas."""

    index: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic. `topic_id` is the zero uuid if the broker's version has none."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]
