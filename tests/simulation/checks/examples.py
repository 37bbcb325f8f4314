"""Histories made by hand for the checks: some break an invariant, some nearly do.

A history is a cluster with one event reported last; everything before it is right.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
)
from kraftwire.messages.fetch_response import PartitionData as FetchedPartition
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    PartitionSnapshot,
    TopicSnapshot,
)
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.messages.vote_response import PartitionData as VotedPartition
from kraftwire.messages.vote_response import TopicData as VotedTopic
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import data_batch
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.entries import Entry, entries_of
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Voters

History = Callable[[], None]

BAD: list[tuple[str, History]] = []
NEAR: list[History] = []


def breaks(invariant: str) -> Callable[[History], History]:
    """Register a history whose last event violates an invariant."""

    def register(history: History) -> History:
        BAD.append((invariant, history))
        return history

    return register


def holds(history: History) -> History:
    """Register a history that violates nothing."""
    NEAR.append(history)
    return history


NONE = bytes(16)
STATIC: Voters = ((1, NONE), (2, NONE), (3, NONE))


def directory(node: int, generation: int = 0) -> bytes:
    """The directory id of a node."""
    return bytes(14) + bytes((generation + 1, node))


def entry(base: int, epoch: int, *values: bytes, voters: Voters | None = None) -> Entry:
    """A batch of one record or of these, which sets a voter set if there is one."""
    made = entries_of(data_batch(base, epoch, 0, list(values) or [b"x"]))[0]
    if voters is None:
        return made
    return made._replace(is_control=True, voters=voters, voters_offset=base)


class ReportedCluster:
    """Checks that are told of events. Everything appended is flushed unless stated otherwise."""

    def __init__(self, voters: Voters = STATIC, nodes: int = 3, version: int = 0) -> None:
        """`voters` are configured, or from kraft.version 1 on in the bootstrap checkpoint."""
        self.configured = () if version else voters
        self.checkers = Checkers(ClusterHistory(voters, version))
        for node in range(1, nodes + 1):
            self.gets_a_disk(node)
            self.starts(node)
            if version:
                self.model(node).load(0, voters, version)

    def gets_a_disk(self, node: int, generation: int = 0) -> None:
        """A node has an empty disk, which makes it another replica."""
        key = (node, directory(node, generation))
        self.checkers.replace(ReplicaModel(key, self.configured))

    def model(self, node: int) -> ReplicaModel:
        """What the checks know of a node."""
        return self.checkers.models[node]

    def on(self, node: int, *seen: did.ReplicaEvent) -> None:
        """Show what a node did."""
        self.checkers.on(node, list(seen))

    def starts(self, node: int, *entries: Entry, at: int = 0, is_durable: bool = True) -> None:
        """A node starts with a log and the vote that it had."""
        start, none = OffsetAndEpoch(at, int(at > 0)), (at, None, None)
        found = did.Started(start, entries, self.model(node).stored, *none, is_durable)
        self.on(node, found)

    def stores(self, node: int, epoch: int, voted: int = -1, leader: int = -1) -> None:
        """A node stores an epoch, a vote, a leader."""
        vote = ReplicaKey(voted, directory(voted)) if voted >= 0 else None
        self.checkers.history.campaigns.add((voted, epoch))
        self.on(node, did.Persisted(ElectionState(epoch, leader, vote), False))

    def asks(
        self, node: int, epoch: int, log: tuple[int, int], *, pre: bool = False, of: int = 0
    ) -> None:
        """A node asks for a vote. `log` is epoch and end offset."""
        self.on(node, did.RequestSent(vote_request(node, epoch, log, pre=pre, of=of)))

    def fetches(self, node: int, offset: int, epoch: int) -> None:
        """A node asks for what is at an offset."""
        partition = FetchPartition(current_leader_epoch=epoch, fetch_offset=offset)
        self.on(node, did.RequestSent(FetchRequest(topics=[FetchTopic(partitions=[partition])])))

    def answers_fetch(self, node: int, leader: int, epoch: int) -> None:
        """A node answers a Fetch, and says who leads."""
        named = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        topic = FetchableTopicResponse(partitions=[FetchedPartition(current_leader=named)])
        self.on(node, did.ResponseSent(FetchRequest(), FetchResponse(responses=[topic]), -1))

    def serves_snapshot(self, node: int, data: bytes) -> None:
        """A node answers a FetchSnapshot."""
        partition = PartitionSnapshot(position=0, size=9, unaligned_records=data)
        answer = FetchSnapshotResponse(topics=[TopicSnapshot(partitions=[partition])])
        self.on(node, did.ResponseSent(FetchSnapshotRequest(), answer, -1))

    def grants(
        self,
        node: int,
        epoch: int,
        to: int,
        log: tuple[int, int],
        *,
        voted: int = -1,
        pre: bool = False,
    ) -> None:
        """A node grants a vote, having voted for `voted` before."""
        partition = VotedPartition(leader_id=-1, leader_epoch=epoch, vote_granted=True)
        answer = VoteResponse(topics=[VotedTopic(partitions=[partition])])
        self.on(node, did.ResponseSent(vote_request(to, epoch, log, pre=pre), answer, voted))

    def elects(self, node: int, epoch: int, *voting: int) -> None:
        """A node is elected by others, who have its log or less, and writes nothing yet."""
        self.stores(node, epoch, node)
        for voter in voting:
            self.stores(voter, epoch, node)
            self.grants(voter, epoch, node, self.model(node).last)
        self.stores(node, epoch, leader=node)
        self.on(node, did.Elected(epoch))

    def writes(self, node: int, *entries: Entry, epoch: int, flush: bool = True) -> None:
        """A leader writes."""
        self.on(node, did.Appended(entries, epoch, True))
        if flush:
            self.on(node, did.Flushed(entries[-1].end))

    def copies(self, node: int, *entries: Entry, epoch: int, flush: bool = True) -> None:
        """A follower writes."""
        self.on(node, did.Appended(entries, epoch, False))
        if flush:
            self.on(node, did.Flushed(entries[-1].end))

    def cuts(self, node: int, end: int, epoch: int, ordered_by: int) -> None:
        """A node truncates its log by order of a leader."""
        self.on(node, did.Truncating(end, epoch, ordered_by), did.Truncated(end))

    def commits(self, node: int, offset: int, epoch: int) -> None:
        """A leader advances its high watermark."""
        self.on(node, did.HighWatermarkAdvanced(offset, epoch))


def vote_request(
    node: int, epoch: int, log: tuple[int, int], *, pre: bool = False, of: int = 0
) -> VoteRequest:
    partition = PartitionData(
        replica_epoch=epoch,
        replica_id=node,
        replica_directory_id=directory(node),
        last_offset_epoch=log[0],
        last_offset=log[1],
        pre_vote=pre,
    )
    voter_id = of or (2 if node != 2 else 1)
    return VoteRequest(voter_id=voter_id, topics=[TopicData(partitions=[partition])])


def led(nodes: int = 3) -> ReportedCluster:
    """1 leads epoch 1 and has committed one batch with 2."""
    cluster = ReportedCluster(nodes=nodes)
    cluster.elects(1, 1, 2)
    first = entry(0, 1)
    cluster.writes(1, first, epoch=1)
    cluster.copies(2, first, epoch=1)
    cluster.commits(1, 1, 1)
    return cluster


def sum_at(cluster: ReportedCluster, offset: int) -> tuple[int, int]:
    """The state of a state machine that has applied what is committed below an offset."""
    return offset, cluster.checkers.history.sums[offset]
