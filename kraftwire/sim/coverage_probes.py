"""Detects situations from the messages and effects of nodes, and counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.fetch_response import PartitionData
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Voters, is_member
from kraftwire.sim.coverage import Coverage
from kraftwire.wire.message import Message

_REQUESTS = {
    AddRaftVoterRequest.API_KEY: "joined by itself",
    RemoveRaftVoterRequest.API_KEY: "replaced itself",
    UpdateRaftVoterRequest.API_KEY: "voter updated",
}


class CoverageProbes:
    """Notes the situations of the nodes of a quorum."""

    __slots__ = ("_answers", "_history", "_hit")

    def __init__(self, coverage: Coverage, history: ClusterHistory) -> None:
        self._hit = coverage.hit
        self._history = history
        self._answers: dict[int, Callable[[Any, Any, int], None]] = {
            VoteRequest.API_KEY: self._vote,
            FetchSnapshotRequest.API_KEY: self._snapshot,
        }

    def asks(self, model: ReplicaModel, message: Message) -> None:
        """Note the situations in a request of this node."""
        if message.API_KEY in _REQUESTS:
            self._hit(_REQUESTS[message.API_KEY])
        elif message.API_KEY == VoteRequest.API_KEY:
            if not model.is_voter():
                self._hit("removed voter stood for election")
            if model.sets[-1][0] < self._history.sets[-1][0]:
                self._hit("stood with a set that is outdated")

    def answers(self, request: Message, message: Message, vote_before: int) -> None:
        """Note the situations in any other answer; `vote_before` is the vote before the request."""
        if cast("Any", message).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._hit("stranger refused")
            return
        seen = self._answers.get(message.API_KEY)
        if seen is not None:
            seen(request, message, vote_before)

    def _vote(self, request: Any, message: Any, vote_before: int) -> None:
        if not message.topics:
            return
        wanted, answer = request.topics[0].partitions[0], message.topics[0].partitions[0]
        kind = "pre-vote" if wanted.pre_vote else "vote"
        if answer.error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self._hit("stale epoch refused")
        elif not answer.error_code:
            self._hit(f"{kind} granted" if answer.vote_granted else f"{kind} refused")
            if answer.vote_granted and not wanted.pre_vote and vote_before == wanted.replica_id:
                self._hit("vote given again")

    def fetched(self, answer: PartitionData) -> None:
        """Note the situations in the answer to a Fetch."""
        if answer.error_code:
            self._hit("fetch refused")
        if answer.diverging_epoch is not None and answer.diverging_epoch.epoch >= 0:
            self._hit("followers diverged")
        if answer.snapshot_id is not None and answer.snapshot_id.epoch >= 0:
            self._hit("sent to a snapshot")

    def _snapshot(self, _request: Any, message: Any, _vote: int) -> None:
        if message.topics and message.topics[0].partitions[0].error_code == (
            ErrorCode.SNAPSHOT_NOT_FOUND
        ):
            self._hit("snapshot gone")

    def compares(self, own: tuple[int, int], request: Any, message: Any) -> None:
        """Note how a Vote request compares with a log that ends with this epoch and offset."""
        wanted = request.topics[0].partitions[0]
        is_older = (wanted.last_offset_epoch, wanted.last_offset) < own
        if is_older and message.topics and not message.topics[0].partitions[0].vote_granted:
            self._hit("vote refused to an older log")

    def states(self, model: ReplicaModel, before: Voters, version: int) -> None:
        """Note that a leader wrote a voter set or a version, where there were others before."""
        now = model.voters
        if model.version > version:
            self._hit("kraft.version raised")
        elif len(now) > len(before):
            self._hit("voter added")
        elif len(now) < len(before):
            self._hit("voter removed")
            if is_member(before, model.key) and not model.is_voter():
                self._hit("leader removed")

    def commits(self, model: ReplicaModel, offset: int) -> None:
        """Note that a leader commits up to an offset."""
        if model.durable < offset:
            self._hit("committed before it was durable at the leader")
        if not model.is_voter():
            self._hit("leader outside of the set commits")

    def writes_snapshot(self, offset: int) -> None:
        """Note that a node writes a snapshot that ends at this offset."""
        voters, version = self._history.at(offset)
        if version and voters != self._history.sets[0][1]:
            self._hit("snapshot with changed voters")
