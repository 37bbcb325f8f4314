"""The identities of the nodes of an untimed cluster: keys, addresses, configurations, requests.

Owns the directory ids: a node whose disk was replaced is another replica with the same id.
"""

from __future__ import annotations

from random import Random

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftwire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftwire.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.protocol.endpoint import Endpoint
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
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.entries import Applied
from kraftwire.sim.checks.voters import Key, Voters
from kraftwire.sim.untimed.disk import Disk, snapshot_bytes
from kraftwire.sim.untimed.plan import Plan

LISTENER_NAME = "CONTROLLER"
CLUSTER_ID = "untimed-cluster-id-123"
_PORT = 9000


def node_of(port: int) -> int:
    """Return the node with a port."""
    return port - _PORT


def _endpoint(node: int) -> Endpoint:
    return Endpoint(LISTENER_NAME, f"node{node}", _PORT + node)


class Members:
    """The nodes of a plan.

    `static` are the voters that the configuration names; none in a dynamic quorum.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._generations = dict.fromkeys(plan.nodes, 0)
        initial = range(1, plan.voters + 1)
        self._static = VoterSet.of(*(Voter(ReplicaKey(n), (_endpoint(n),)) for n in initial))
        self._initial = VoterSet.of(*(self._voter(node) for node in initial))
        self._timers = RaftTimers(**plan.timers)
        self.static: Voters = () if plan.is_dynamic else tuple((n, bytes(16)) for n in initial)

    def _voter(self, node: int) -> Voter:
        highest = KRAFT_VERSION_MAX + (node == self._plan.newer_voter)
        return Voter(ReplicaKey(*self.key(node)), (_endpoint(node),), 0, highest)

    def history(self) -> ClusterHistory:
        """Return the history of a cluster that has not begun."""
        first = tuple(self.key(node) for node in range(1, self._plan.voters + 1))
        return ClusterHistory(self.static or first, int(self._plan.is_dynamic))

    def checkers(self) -> Checkers:
        """Return the checks of a cluster that has not begun."""
        return Checkers(self.history())

    def directory_id(self, node: int, generation: int) -> bytes:
        """Return the directory id of a node that has lost this many disks."""
        return bytes(13) + bytes((1, generation, node))

    def software(self, _node: int) -> str:
        """Return the name with which a node's client introduces itself."""
        return ""

    def random(self, node: int, run: int) -> Random:
        """Return the random numbers of a run of a node."""
        return Random(f"{self._plan.seed} {node} {run}")

    def key(self, node: int) -> Key:
        """Return the present replica of a node."""
        return node, self.directory_id(node, self._generations[node])

    def old_key(self, node: int) -> Key | None:
        """Return the replica that a node was before its disk was replaced, None if it never was."""
        generation = self._generations[node]
        return (node, self.directory_id(node, generation - 1)) if generation else None

    def format(self, node: int) -> Disk:
        """Return the disk of a node before its first start: initial voters know each other."""
        bootstrap = b""
        if self._plan.is_dynamic and node <= self._plan.voters and not self._generations[node]:
            bootstrap = _checkpoint(self._initial)
        return Disk(self.key(node)[1], bootstrap)

    def wipe(self, node: int) -> Disk:
        """Give a node an empty disk."""
        self._generations[node] += 1
        return self.format(node)

    def may_wipe(self, node: int, checkers: Checkers) -> bool:
        """Return whether every voter set that a node may adopt keeps a majority of working disks.

        Static voters have no directory ids: one that loses its disk cannot be distinguished from
        one that forgot its votes.
        """
        key = self.key(node)
        for model in checkers.models.values():
            for _, voters in model.sets:
                if any(one[0] == node and not any(one[1]) for one in voters):
                    return False
                gone = [one for one in voters if one == key or not self._is_alive(one)]
                if key in voters and 2 * len(gone) >= len(voters):
                    return False
        return True

    def _is_alive(self, key: Key) -> bool:
        return not any(key[1]) or key == self.key(key[0])

    def config(self, node: int) -> RaftConfig:
        """Return a node's configuration."""
        plan = self._plan
        others = tuple(_endpoint(n) for n in range(1, plan.voters + 1) if n != node)
        return RaftConfig(
            key=ReplicaKey(*self.key(node)),
            cluster_id=CLUSTER_ID,
            voters=VoterSet() if plan.is_dynamic else self._static,
            listener=LISTENER_NAME,
            endpoints=(_endpoint(node),),
            bootstrap_servers=others if plan.is_dynamic else (),
            timers=self._timers,
            fetch_max_bytes=plan.fetch_max_bytes,
            fetch_snapshot_max_bytes=plan.chunk_bytes,
            auto_join=plan.auto_join,
            handover=Handover.NEVER,
        )

    def add_request(self, node: int) -> AddRaftVoterRequest:
        """Build a request to make a node a voter."""
        at, (node_id, directory_id) = _endpoint(node), self.key(node)
        return AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=1000,
            voter_id=node_id,
            voter_directory_id=directory_id,
            listeners=[Listener(name=at.listener, host=at.host, port=at.port)],
        )

    def remove_request(self, key: Key) -> RemoveRaftVoterRequest:
        """Build a request to remove a voter."""
        return RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=key[0], voter_directory_id=key[1]
        )

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
        return FetchSnapshotRequest(cluster_id=CLUSTER_ID, topics=[topic])

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
