"""The nodes of a cluster in virtual time: their formatted disks, and their configurations."""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.log.format import FormatNode, FormatRequest, VotersFlag, format_directories
from kraftwire.log.voters import InitialVoter
from kraftwire.raft.config import Handover, RaftConfig, RaftTimers
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.replica.storage import Directories
from kraftwire.sim.checks.voters import Voters
from kraftwire.sim.disk import SimFiles
from kraftwire.sim.plan import DYNAMIC, Plan
from kraftwire.sim.replicas import LISTENER_NAME, Replicas, endpoint
from kraftwire.sim.storage import DIRECTORY, directories

_CLUSTER_ID = "simulated-cluster-id-1"
_OTHER_CLUSTER_ID = "simulated-cluster-id-2"


class Members(Replicas):
    """The nodes of a plan."""

    def __init__(self, plan: Plan, *, is_stranger: bool = False) -> None:
        """Of the plan's cluster; or the one node of another cluster that takes the first voters of
        this one for those of its own."""
        self.timers = RaftTimers(**plan.timers)
        self._plan = plan
        nodes, first = range(1, plan.nodes + 1), range(1, plan.voters + 1)
        if is_stranger:
            nodes = range(plan.nodes + 1, plan.nodes + 2)
            super().__init__(nodes, (*first, *nodes), _OTHER_CLUSTER_ID, is_dynamic=False)
        else:
            super().__init__(nodes, first, _CLUSTER_ID, is_dynamic=plan.quorum == DYNAMIC)

    def configured(self, node: int) -> Voters:
        """Return the voters in the configuration of a node.

        If configured voters may have become voters in the log, a new disk comes with a
        configuration without them: otherwise a node that was the majority of the old set would
        elect itself.
        """
        if self._plan.has_changes and self.disks[node]:
            return ()
        return super().configured(node)

    def format(self, node: int, files: SimFiles) -> None:
        """Prepare a node's empty disk. In a dynamic quorum an operator does this, and names the
        first voters; in a static one the node does it itself."""
        if not self.is_dynamic:
            return
        is_first = self.has_first_disk(node)
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
            listener=LISTENER_NAME,
            endpoint=(endpoint(node).host, endpoint(node).port),
        )
        for _ in format_directories(files, formatted, request):
            pass  # its output is for people

    def _initial_voters(self) -> Iterable[InitialVoter]:
        for node, directory_id in self.initial:
            at = endpoint(node)
            yield InitialVoter(node, directory_id, at.host, at.port)

    def directories(self, node: int) -> Directories:
        """Where a node keeps its files."""
        return directories(
            node,
            self._plan.segment_bytes,
            None if self.is_dynamic else lambda: self.key(node)[1],
        )

    def config(self, node: int, directory_id: bytes) -> RaftConfig:
        """What a node is configured with."""
        plan = self._plan
        others = [other for other in self.disks if other != node] or [node]
        has_static = bool(self.configured(node))
        return RaftConfig(
            key=ReplicaKey(node, directory_id),
            cluster_id=self.cluster_id,
            voters=self.static if has_static else VoterSet(),
            endpoints=(endpoint(node),),
            bootstrap_servers=() if has_static else tuple(map(endpoint, others)),
            timers=self.timers,
            fetch_snapshot_max_bytes=plan.snapshots.chunk if plan.snapshots else 1 << 20,
            auto_join=plan.auto_join,
            # More happens than with the default: voters are asked which software they are.
            handover=Handover.AUTO,
        )

    def wipe(self, node: int, files: SimFiles) -> None:
        """Replace a node's disk with an empty one, which makes it another replica."""
        files.wipe()
        self.disks[node] += 1
        self.format(node, files)
