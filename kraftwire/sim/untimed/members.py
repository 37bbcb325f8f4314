"""The nodes of an untimed cluster: their disks, their configurations, and requests to them."""

from __future__ import annotations

from random import Random

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftwire.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.raft.config import (
    KRAFT_VERSION_MAX,
    Handover,
    RaftConfig,
    RaftTimers,
    TopicPartition,
)
from kraftwire.raft.effects import WriteSnapshot
from kraftwire.raft.histories import voters_record
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from kraftwire.sim.checks.entries import Applied
from kraftwire.sim.checks.voters import Key
from kraftwire.sim.replicas import LISTENER_NAME, Replicas, endpoint
from kraftwire.sim.untimed.disk import Disk, snapshot_bytes
from kraftwire.sim.untimed.plan import UntimedPlan

_CLUSTER_ID = "untimed-cluster-id-123"
_ADD_TIMEOUT_MS = 1000


class UntimedMembers(Replicas):
    """The nodes of a plan."""

    def __init__(self, plan: UntimedPlan) -> None:
        self._plan = plan
        self.timers = RaftTimers(**plan.timers)
        first = range(1, plan.voters + 1)
        super().__init__(plan.nodes, first, _CLUSTER_ID, is_dynamic=plan.is_dynamic)
        self._initial = VoterSet.of(*(self._voter(node) for node in first))

    def _voter(self, node: int) -> Voter:
        highest = KRAFT_VERSION_MAX + (node == self._plan.newer_voter)
        return Voter(ReplicaKey(*self.key(node)), (endpoint(node),), 0, highest)

    def software(self, _node: int) -> str:
        """Return the name with which a node's client introduces itself."""
        return ""

    def random(self, node: int, run: int) -> Random:
        """Return the random numbers of a run of a node."""
        return Random(f"{self._plan.seed} {node} {run}")

    def earlier_key(self, node: int, age: int) -> Key | None:
        """Return the replica that a node was before its last disks, as many as `age`, were
        replaced; None if it never was."""
        generation = self.disks[node] - age
        return (node, self.directory_id(node, generation)) if generation >= 0 else None

    def format(self, node: int) -> Disk:
        """Return the disk of a node before its first start: initial voters know each other."""
        has_voters = self.is_dynamic and self.has_first_disk(node)
        return Disk(self.key(node)[1], _checkpoint(self._initial) if has_voters else b"")

    def wipe(self, node: int) -> Disk:
        """Give a node an empty disk."""
        self.disks[node] += 1
        return self.format(node)

    def config(self, node: int) -> RaftConfig:
        """Return a node's configuration."""
        plan = self._plan
        others = tuple(endpoint(one) for one in self.first if one != node)
        return RaftConfig(
            key=ReplicaKey(*self.key(node)),
            cluster_id=self.cluster_id,
            voters=self.static,
            listener=LISTENER_NAME,
            endpoints=(endpoint(node),),
            bootstrap_servers=others if plan.is_dynamic else (),
            timers=self.timers,
            fetch_max_bytes=plan.fetch_max_bytes,
            fetch_snapshot_max_bytes=plan.chunk_bytes,
            auto_join=plan.auto_join,
            handover=Handover.NEVER,
        )

    def request_to_add(self, node: int) -> AddRaftVoterRequest:
        """Build a request to make a node a voter."""
        return self.add_request(self.key(node), _ADD_TIMEOUT_MS)

    def read_request(
        self, snapshot: OffsetAndEpoch, position: int, epoch: int
    ) -> FetchSnapshotRequest:
        """Build a client's request for a part of a snapshot."""
        partition = PartitionSnapshot(
            current_leader_epoch=epoch,
            snapshot_id=SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
            position=position,
        )
        topic = TopicSnapshot(name=TopicPartition().name, partitions=[partition])
        return FetchSnapshotRequest(cluster_id=self.cluster_id, topics=[topic])

    def api_versions(self, _node: int) -> ApiVersionsResponse:
        """Return the answer of a node to ApiVersions."""
        feature = SupportedFeatureKey(
            name="kraft.version", min_version=0, max_version=KRAFT_VERSION_MAX
        )
        return ApiVersionsResponse(supported_features=[feature])


def _checkpoint(voters: VoterSet) -> bytes:
    """Return the bootstrap checkpoint 0-0 of a dynamic quorum."""
    control = (
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
        (ControlType.KRAFT_VOTERS, voters_record(voters)),
    )
    return snapshot_bytes(WriteSnapshot(0, BOOTSTRAP_SNAPSHOT, control, 0), Applied())
