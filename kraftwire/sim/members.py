"""The identities of the nodes of a cluster: keys, addresses, formatted disks, configurations.

Owns the directory ids: a node whose disk was replaced is another replica with the same id.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.log.format import FormatNode, FormatRequest, VotersFlag, format_directories
from kraftwire.log.voters import InitialVoter
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.config import Handover, RaftConfig, RaftTimers
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.replica.storage import Directories
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Key, Voters
from kraftwire.sim.disk import SimFiles
from kraftwire.sim.plan import DYNAMIC, Plan
from kraftwire.sim.storage import DIRECTORY, directories

LISTENER = "CONTROLLER"
PORT = 9093

_CLUSTER_ID = "simulated-cluster-id-1"
_OTHER_CLUSTER_ID = "simulated-cluster-id-2"


def endpoint(node: int) -> Endpoint:
    """Return a node's endpoint."""
    return Endpoint(LISTENER, f"node{node}", PORT)


class Members:
    """The nodes of a plan. `initial` is in force before anything is written."""

    def __init__(self, plan: Plan, *, is_stranger: bool = False) -> None:
        """Of the plan's cluster; or the one node of another cluster that takes the first voters of
        this one for those of its own."""
        self.timers = RaftTimers(**plan.timers)
        self._plan = plan
        self._cluster_id = _OTHER_CLUSTER_ID if is_stranger else _CLUSTER_ID
        self._is_dynamic = plan.quorum == DYNAMIC and not is_stranger
        self._first = list(range(1, plan.voters + 1))
        ids = range(1, plan.nodes + 1)
        if is_stranger:
            ids = range(plan.nodes + 1, plan.nodes + 2)
            self._first += ids
        self._disks = dict.fromkeys(ids, 0)
        self._static = VoterSet()
        if self._is_dynamic:
            self.initial: Voters = tuple(self.key(node) for node in self._first)
        else:
            self.initial = tuple((node, bytes(16)) for node in self._first)
            self._static = VoterSet.of(
                *(Voter(ReplicaKey(node), (endpoint(node),)) for node in self._first)
            )

    def key(self, node: int) -> Key:
        """Return the current replica of a node: every disk has a unique id."""
        return node, bytes(13) + bytes((1, self._disks[node], node))

    def checkers(self) -> Checkers:
        """Return the checks of these nodes, which have not begun."""
        made = Checkers(ClusterHistory(self.initial, int(self._is_dynamic)))
        for node in self._disks:
            made.replace(self.model(node))
        return made

    def model(self, node: int) -> ReplicaModel:
        """Return what the checks know of the current replica of a node with an empty log.

        In a dynamic quorum only the first disks of the first voters have the voters.
        """
        model = ReplicaModel(self.key(node), self.configured(node))
        if self._is_dynamic and node in self._first and not self._disks[node]:
            model.load(0, self.initial, 1)
        return model

    def configured(self, node: int) -> Voters:
        """Return the voters in the configuration of a node.

        If configured voters may have become voters in the log, a new disk comes with a
        configuration without them: otherwise a node that was the majority of the old set would
        elect itself.
        """
        if self._is_dynamic or (self._plan.has_changes and self._disks[node]):
            return ()
        return self.initial

    def format(self, node: int, files: SimFiles) -> None:
        """Prepare a node's empty disk. In a dynamic quorum an operator does this, and names the
        first voters; in a static one the node does it itself."""
        if not self._is_dynamic:
            return
        is_first = node in self._first and not self._disks[node]
        later = VotersFlag.NO_INITIAL_CONTROLLERS
        request = FormatRequest(
            cluster_id=_CLUSTER_ID,
            voters_flag=VotersFlag.INITIAL_CONTROLLERS if is_first else later,
            voters=tuple(self._initial_voters()) if is_first else (),
            new_id=lambda: self.key(node)[1],
        )
        formatted = FormatNode(
            node_id=node,
            directories=(DIRECTORY,),
            metadata_directory=DIRECTORY,
            is_controller=True,
            has_static_voters=False,
            listener=LISTENER,
            endpoint=(f"node{node}", PORT),
        )
        for _ in format_directories(files, formatted, request):
            pass  # its output is for people

    def _initial_voters(self) -> Iterable[InitialVoter]:
        for node, directory_id in self.initial:
            yield InitialVoter(node, directory_id, f"node{node}", PORT)

    def directories(self, node: int) -> Directories:
        """Where a node keeps its files."""
        return directories(
            node,
            self._plan.segment_bytes,
            None if self._is_dynamic else lambda: self.key(node)[1],
        )

    def config(self, node: int, directory_id: bytes) -> RaftConfig:
        """What a node is configured with."""
        plan = self._plan
        others = [other for other in self._disks if other != node] or [node]
        has_static = bool(self.configured(node))
        return RaftConfig(
            key=ReplicaKey(node, directory_id),
            cluster_id=self._cluster_id,
            voters=self._static if has_static else VoterSet(),
            endpoints=(endpoint(node),),
            bootstrap_servers=() if has_static else tuple(map(endpoint, others)),
            timers=self.timers,
            fetch_snapshot_max_bytes=plan.snapshots.chunk if plan.snapshots else 1 << 20,
            auto_join=plan.auto_join,
            # More happens than with the default: voters are asked which software they are.
            handover=Handover.AUTO,
        )

    # Disks that are replaced

    def wipe(self, node: int, files: SimFiles) -> None:
        """Replace a node's disk with an empty one, which makes it another replica."""
        files.wipe()
        self._disks[node] += 1
        self.format(node, files)

    def is_alive(self, key: Key) -> bool:
        """Whether a replica still has its disk."""
        return not any(key[1]) or key == self.key(key[0])

    def keeps_majority(self, voters: Voters, gone: Key | None = None) -> bool:
        """Return whether a majority of a voter set keep their disks even after `gone` loses its
        own."""
        alive = [one for one in voters if self.is_alive(one) and one != gone]
        return 2 * len(alive) > len(voters)

    def may_wipe(self, node: int, checkers: Checkers) -> bool:
        """Return whether every voter set that some node may adopt keeps a majority of working
        disks.

        Static voters have no directory ids: one that loses its disk cannot be distinguished from
        one that forgot its votes. A log that is not flushed may be shorter after a crash, with an
        older set.
        """
        key = self.key(node)
        for model in checkers.models.values():
            for voters in checkers.sets_of(model):
                if (node, bytes(16)) in voters:
                    return False
                if key in voters and not self.keeps_majority(voters, key):
                    return False
        return True

    # Requests of operators

    def add_request(self, key: Key, *, is_awaited: bool) -> AddRaftVoterRequest:
        """Build a request to add a voter, answered after the commit if `is_awaited`."""
        at = endpoint(key[0])
        return AddRaftVoterRequest(
            cluster_id=_CLUSTER_ID,
            timeout_ms=self.timers.request_timeout_ms,
            voter_id=key[0],
            voter_directory_id=key[1],
            listeners=[Listener(name=at.listener, host=at.host, port=at.port)],
            ack_when_committed=is_awaited,
        )

    def remove_request(self, key: Key) -> RemoveRaftVoterRequest:
        """Build a request to remove a voter."""
        return RemoveRaftVoterRequest(
            cluster_id=_CLUSTER_ID, voter_id=key[0], voter_directory_id=key[1]
        )
