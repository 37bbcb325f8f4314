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
from kraftwire.sim.check_logs import LogChecks
from kraftwire.sim.coverage import Coverage
from kraftwire.sim.replica_log import ReplicaLog
from kraftwire.sim.voters import InForce
from kraftwire.wire.message import Message

_REQUESTS = {
    AddRaftVoterRequest.API_KEY: "joined by itself",
    RemoveRaftVoterRequest.API_KEY: "replaced itself",
    UpdateRaftVoterRequest.API_KEY: "voter updated",
}


class CoverageProbes:
    """Notes the situations of the nodes of a quorum."""

    __slots__ = ("_answers", "_log_checks", "_hit")

    def __init__(self, coverage: Coverage, log_checks: LogChecks) -> None:
        self._hit = coverage.hit
        self._log_checks = log_checks
        self._answers: dict[int, Callable[[Any, Any, int], None]] = {
            VoteRequest.API_KEY: self._vote,
            FetchSnapshotRequest.API_KEY: self._snapshot,
        }

    def asks(self, log: ReplicaLog, message: Message) -> None:
        """Note the situations in a request of a node with this log."""
        if message.API_KEY in _REQUESTS:
            self._hit(_REQUESTS[message.API_KEY])
        elif message.API_KEY == VoteRequest.API_KEY:
            if not log.in_force.has(log.key):
                self._hit("removed voter stood for election")
            if log.in_force.offset < self._log_checks.in_force.offset:
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

    def states(self, log: ReplicaLog, before: InForce) -> None:
        """Note that a leader with this log wrote a voter set or a version."""
        now = log.in_force
        if now.version > before.version:
            self._hit("kraft.version raised")
        elif len(now.voters) > len(before.voters):
            self._hit("voter added")
        elif len(now.voters) < len(before.voters):
            self._hit("voter removed")
            if before.has(log.key) and not now.has(log.key):
                self._hit("leader removed")

    def commits(self, log: ReplicaLog, offset: int) -> None:
        """Note that a leader with this log commits up to an offset."""
        if log.durable_end < offset:
            self._hit("committed before it was durable at the leader")
        if not log.in_force.has(log.key):
            self._hit("leader outside of the set commits")

    def writes_snapshot(self, offset: int) -> None:
        """Note that a node writes a snapshot that ends at this offset."""
        in_force, first = self._log_checks.in_force_at(offset), self._log_checks.initial
        if in_force.version and in_force.voters != first.voters:
            self._hit("snapshot with changed voters")
