"""The nodes of a cluster as replicas: ids, addresses, voters at the beginning, lost disks, and the
requests with which operators change the voters."""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Key, Voters

LISTENER_NAME = "CONTROLLER"
_PORT = 9000


def endpoint(node: int) -> Endpoint:
    """Return a node's endpoint."""
    return Endpoint(LISTENER_NAME, f"node{node}", _PORT + node)


def node_of(port: int) -> int:
    """Return the node with a port."""
    return port - _PORT


class Replicas:
    """The nodes of a cluster, and the replicas that they are at present: a node whose disk was
    replaced is another replica with the same id.

    `first` are the voters at the beginning, `initial` the set of these. They are in the log if
    `is_dynamic`, else configured.
    """

    def __init__(
        self, nodes: Iterable[int], first: Iterable[int], cluster_id: str, *, is_dynamic: bool
    ) -> None:
        self.cluster_id = cluster_id
        self.is_dynamic = is_dynamic
        self.first = tuple(first)
        self.disks = dict.fromkeys(nodes, 0)
        self.static = VoterSet()
        if is_dynamic:
            self.initial: Voters = tuple(self.key(node) for node in self.first)
        else:
            self.initial = tuple((node, bytes(16)) for node in self.first)
            voters = (Voter(ReplicaKey(node), (endpoint(node),)) for node in self.first)
            self.static = VoterSet.of(*voters)

    def directory_id(self, node: int, generation: int) -> bytes:
        """Return the directory id of a node that has lost this many disks."""
        return bytes(13) + bytes((1, generation, node))

    def key(self, node: int) -> Key:
        """Return the present replica of a node."""
        return node, self.directory_id(node, self.disks[node])

    def has_first_disk(self, node: int) -> bool:
        """Whether a node is one of the first voters and still has its disk."""
        return node in self.first and not self.disks[node]

    def checkers(self) -> Checkers:
        """Return the checks of these nodes, which have not begun."""
        made = Checkers(self.history())
        for node in self.disks:
            made.replace(self.model(node))
        return made

    def history(self) -> ClusterHistory:
        """Return the history of a cluster that has not begun."""
        return ClusterHistory(self.initial, int(self.is_dynamic))

    def model(self, node: int) -> ReplicaModel:
        """Return what the checks know of the present replica of a node with an empty log.

        In a dynamic quorum only the first disks of the first voters have the voters.
        """
        model = ReplicaModel(self.key(node), self.configured(node))
        if self.is_dynamic and self.has_first_disk(node):
            model.load(0, self.initial, 1)
        return model

    def configured(self, node: int) -> Voters:  # noqa: ARG002
        """Return the voters in the configuration of a node."""
        return () if self.is_dynamic else self.initial

    # Disks that are replaced

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

    def add_request(
        self, key: Key, timeout_ms: int, *, is_awaited: bool = True
    ) -> AddRaftVoterRequest:
        """Build a request to add a voter, answered after the commit if `is_awaited`."""
        at = endpoint(key[0])
        return AddRaftVoterRequest(
            cluster_id=self.cluster_id,
            timeout_ms=timeout_ms,
            voter_id=key[0],
            voter_directory_id=key[1],
            listeners=[Listener(name=at.listener, host=at.host, port=at.port)],
            ack_when_committed=is_awaited,
        )

    def remove_request(self, key: Key) -> RemoveRaftVoterRequest:
        """Build a request to remove a voter."""
        return RemoveRaftVoterRequest(
            cluster_id=self.cluster_id, voter_id=key[0], voter_directory_id=key[1]
        )
