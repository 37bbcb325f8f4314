"""LogChecks made by hand for the checks of clusters without time: some break an invariant.

A history is a checkers with one thing seen last; everything before it is right.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.messages.vote_response import PartitionData as VotedPartition
from kraftwire.messages.vote_response import TopicData as VotedTopic
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import data_batch
from kraftwire.sim.untimed import replica_events as did
from kraftwire.sim.untimed.checkers import Checkers
from kraftwire.sim.untimed.disk import Entry, entries_of
from kraftwire.sim.voters import Voters

History = Callable[[], None]

NONE = bytes(16)
STATIC: Voters = ((1, NONE), (2, NONE), (3, NONE))


def directory(node: int, generation: int = 0) -> bytes:
    """The directory id of a node."""
    return bytes(14) + bytes((generation + 1, node))


def entry(base: int, epoch: int, text: bytes = b"x", voters: Voters | None = None) -> Entry:
    """A batch of one record, which sets a voter set if there is one."""
    made = entries_of(data_batch(base, epoch, 0, [text]))[0]
    return made._replace(is_control=True, voters=voters, voters_offset=base) if voters else made


class ReportedCluster:
    """Checkers that hear of events. Everything appended is flushed unless stated otherwise."""

    def __init__(self, static: Voters = STATIC, nodes: int = 3) -> None:
        self.checkers = Checkers(static)
        for node in range(1, nodes + 1):
            self.starts(node)

    def on(self, node: int, *seen: did.ReplicaEvent) -> None:
        """Show what a node did."""
        self.checkers.on(node, list(seen))

    def starts(self, node: int, *entries: Entry, generation: int = 0, at: int = 0) -> None:
        """A node starts with a log and the vote that it had."""
        model = self.checkers.models.get(node)
        election = ElectionState()
        if model is not None and model.key == (node, directory(node, generation)):
            election = model.stored
        start = OffsetAndEpoch(at, 0)
        key = directory(node, generation)
        self.on(node, did.Started(key, start, entries, election, 0, None, None))

    def stores(self, node: int, epoch: int, voted: int = -1, leader: int = -1) -> None:
        """A node stores an epoch, a vote, a leader."""
        vote = ReplicaKey(voted, directory(voted)) if voted >= 0 else None
        self.checkers.history.campaigns.add((voted, epoch))
        self.on(node, did.Persisted(ElectionState(epoch, leader, vote), False))

    def asks(self, node: int, epoch: int, log: tuple[int, int], *, pre: bool = False) -> None:
        """A node asks for a vote. `log` is epoch and end offset."""
        self.on(node, did.RequestSent(vote_request(node, epoch, log, pre=pre)))

    def grants(self, node: int, epoch: int, to: int, log: tuple[int, int], voted: int = -1) -> None:
        """A node grants a vote, having voted for `voted` before."""
        partition = VotedPartition(leader_id=-1, leader_epoch=epoch, vote_granted=True)
        answer = VoteResponse(topics=[VotedTopic(partitions=[partition])])
        self.on(node, did.ResponseSent(vote_request(to, epoch, log), answer, voted))

    def elects(self, node: int, epoch: int, *voting: int) -> None:
        """A node is elected by others, who have its log or less, and writes nothing yet."""
        model = self.checkers.models[node]
        self.stores(node, epoch, node)
        for voter in voting:
            self.stores(voter, epoch, node)
            self.grants(voter, epoch, node, (model.last_epoch, model.end))
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

    def commits(self, node: int, offset: int, epoch: int) -> None:
        """A leader advances its high watermark."""
        self.on(node, did.HighWatermarkAdvanced(offset, epoch))


def vote_request(node: int, epoch: int, log: tuple[int, int], *, pre: bool = False) -> VoteRequest:
    partition = PartitionData(
        replica_epoch=epoch,
        replica_id=node,
        replica_directory_id=directory(node),
        last_offset_epoch=log[0],
        last_offset=log[1],
        pre_vote=pre,
    )
    return VoteRequest(voter_id=2 if node != 2 else 1, topics=[TopicData(partitions=[partition])])


def led(static: Voters = STATIC, nodes: int = 3) -> ReportedCluster:
    """1 leads epoch 1 and has committed one batch with 2."""
    cluster = ReportedCluster(static, nodes)
    cluster.elects(1, 1, 2)
    first = entry(0, 1)
    cluster.writes(1, first, epoch=1)
    cluster.copies(2, first, epoch=1)
    cluster.commits(1, 1, 1)
    return cluster


def sum_at(cluster: ReportedCluster, offset: int) -> tuple[int, int]:
    """The state of a state machine that has applied what is committed below an offset."""
    return offset, cluster.checkers.history.sums[offset]
