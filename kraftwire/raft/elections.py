"""Pre-votes and votes: asking for them, granting them, counting them.

Source: KIP-595, KIP-996; R-VOTE-1 to R-VOTE-13.
"""

from __future__ import annotations

from typing import cast

from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.raft import answers
from kraftwire.raft.effects import SendReply
from kraftwire.raft.epochs import EPOCH_MAX, hears_no_leader, may_move_epoch
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.responses import ResponseOutcome, settle_partition, settle_top_level
from kraftwire.raft.roles import Candidate, Prospective, Unattached
from kraftwire.raft.state import Purpose, RaftState, SentRequest
from kraftwire.raft.transitions import (
    grant_vote,
    to_candidate,
    to_follower,
    to_prospective,
    to_unattached,
)
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch

# ---- asking --------------------------------------------------------------------------------------


def poll_prospective(state: RaftState, role: Prospective) -> None:
    """Continue a pre-vote: it is won, lost or timed out, or there are voters left to ask."""
    if not state.may_stand:
        # An observer has no election timeout, after which to return to a leader that it knows.
        _end_prospective(state, role, "no longer a voter")
    elif role.epoch >= EPOCH_MAX:
        _end_prospective(state, role, "there is no higher epoch")
    elif role.votes.is_won:
        to_candidate(state, "a majority would vote for this node")
    elif role.votes.is_lost:
        _end_prospective(state, role, "no majority would vote for this node")
    elif state.now >= role.deadline_ms:
        _end_prospective(state, role, "the pre-vote timed out")
    else:
        send_vote_requests(state, role)


def _end_prospective(state: RaftState, role: Prospective, reason: str) -> None:
    """Return to the previous role: the leader, if known, may be alive after all."""
    if role.leader_id >= 0 and role.leader_endpoints and role.leader_id != state.config.key.id:
        to_follower(state, role.epoch, role.leader_id, role.leader_endpoints, reason)
        return
    to_unattached(state, role.epoch, reason, keep=True)
    new = state.role
    is_late = state.now >= role.deadline_ms
    if type(new) is Unattached and new.deadline_ms is not None and is_late:
        # Differs from Kafka, which stands again at once. The voters that did not answer may have
        # been replaced long ago: first allow time to ask bootstrap servers for the leader.
        new.deadline_ms = state.now + state.config.timers.election_timeout_ms // 2


def poll_candidate(state: RaftState, role: Candidate) -> None:
    """Continue an election that is not won yet.

    Differs from Kafka, which waits for the timeout of a lost election: a candidate that can no
    longer win waits at most the election back-off, as KIP-595 specifies, and asks for pre-votes
    again. A candidate without pre-votes waits as in Kafka: with an older log than the others, it
    would begin one epoch after the other, and each would delay the elections that others could win
    (L1).
    """
    if not state.may_stand:
        to_unattached(state, role.epoch, "no longer a voter", keep=True)
        return
    if role.votes.is_lost and role.retry_ms is None:
        backoff = state.config.timers.election_backoff_max_ms
        wait = state.random.randrange(backoff + 1)
        early_ms = min(role.deadline_ms, state.now + wait)
        role.retry_ms = early_ms if role.has_pre_votes else role.deadline_ms
        wait_ms = role.retry_ms - state.now
        text = f"lost the election of epoch {role.epoch}, waits {wait_ms} ms"
        state.note(text, key="election-lost")
    if role.retry_ms is not None and state.now >= role.retry_ms:
        to_prospective(state, "the election is lost")
    elif state.now >= role.deadline_ms:
        to_prospective(state, "the election timed out")
    elif role.retry_ms is None:
        send_vote_requests(state, role)


def send_vote_requests(state: RaftState, role: Prospective | Candidate) -> None:
    """Ask every voter that has not answered and whose connection is ready (R-VOTE-2)."""
    for voter in role.votes.unanswered:
        destination = state.voter_destination(voter)
        if destination is not None and state.peers.is_ready(destination.key, state.now):
            state.send(destination, _vote_request(state, voter), Purpose.VOTE)


def _vote_request(state: RaftState, voter: ReplicaKey) -> VoteRequest:
    key, log = state.config.key, state.log
    partition = PartitionData(
        replica_epoch=state.role.epoch,
        replica_id=key.id,
        replica_directory_id=key.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=log.last_epoch,
        last_offset=log.end_offset,
        pre_vote=type(state.role) is Prospective,
    )
    topic = TopicData(topic_name=state.config.topic.name, partitions=[partition])
    return VoteRequest(cluster_id=state.cluster_id, voter_id=voter.id, topics=[topic])


# ---- granting ------------------------------------------------------------------------------------


def handle_vote_request(state: RaftState, event: RequestReceived) -> None:
    """Answer a Vote request; a granted vote is durable before the answer leaves (D1, S3)."""
    request = cast("VoteRequest", event.message)
    reply = _vote_answer(state, request, answers.listener_of(event))
    if event.client_software and reply.topics:
        _record_candidate_software(state, request, reply, event.client_software)
    state.emit(SendReply(event.token, reply))


def _record_candidate_software(
    state: RaftState, request: VoteRequest, reply: VoteResponse, software: str
) -> None:
    """Record the software that a candidate claims to be, if its request was accepted."""
    if reply.topics[0].partitions[0].error_code == ErrorCode.NONE:
        partition = request.topics[0].partitions[0]
        key = ReplicaKey(partition.replica_id, partition.replica_directory_id)
        state.record_claimed_software(key, software != SOFTWARE_NAME)


def _vote_answer(state: RaftState, request: VoteRequest, listener: str) -> VoteResponse:
    """The checks in the order that peers rely on (R-VOTE-4)."""
    if answers.cluster_id_differs(state, request.cluster_id):
        return VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = answers.only_partition(request.topics, state.config.topic)
    if partition is None:
        return VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not _is_legal(partition):
        return answers.vote(state, listener, ErrorCode.INVALID_REQUEST)
    if partition.replica_epoch < state.role.epoch:
        return answers.vote(state, listener, ErrorCode.FENCED_LEADER_EPOCH)
    if partition.replica_id < 0:
        return answers.vote(state, listener, ErrorCode.INVALID_REQUEST)
    nominee = ReplicaKey(partition.replica_id, partition.replica_directory_id)
    is_ahead = _candidate_end(partition).is_newer_or_equal(state.log.end)
    if not may_move_epoch(state, nominee, partition.replica_epoch, is_ahead=is_ahead):
        # Differs from Kafka. A retriable error harms an honest peer least.
        return answers.vote(state, listener, ErrorCode.BROKER_NOT_AVAILABLE)
    if partition.replica_epoch > state.role.epoch:
        to_unattached(
            state,
            partition.replica_epoch,
            f"{partition.replica_id} asks for votes in epoch {partition.replica_epoch}",
        )
    if not is_addressee(state, request.voter_id, partition.voter_directory_id):
        return answers.vote(state, listener, ErrorCode.INVALID_VOTER_KEY)
    return answers.vote(state, listener, ErrorCode.NONE, granted=_decide_vote(state, partition))


def _is_legal(partition: PartitionData) -> bool:
    """Return whether epochs and offset are valid for a candidate (R-VOTE-4, step 3)."""
    # A pre-vote carries the current epoch, in which its log may have been written.
    epoch_max = partition.replica_epoch - (0 if partition.pre_vote else 1)
    return partition.last_offset >= 0 and 0 <= partition.last_offset_epoch <= epoch_max


def is_addressee(state: RaftState, voter_id: int, directory_id: bytes) -> bool:
    """Return whether a request is addressed to this replica; -1 and the zero uuid match any."""
    key = state.config.key
    addressee = ReplicaKey(voter_id, directory_id)
    return voter_id < 0 or (
        voter_id == key.id and (not addressee.has_directory_id or addressee == key)
    )


def _candidate_end(partition: PartitionData) -> OffsetAndEpoch:
    """Return the end of the candidate's log."""
    return OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch)


def _decide_vote(state: RaftState, partition: PartitionData) -> bool:
    """Return whether to vote for a valid request in the current epoch (R-VOTE-5, R-VOTE-6)."""
    if partition.replica_id == state.config.key.id:
        # Another directory of this node: in a static voter set it is this same voter, and its vote
        # for itself and ours for it would be two votes in one epoch.
        return False
    is_up_to_date = _candidate_end(partition).is_newer_or_equal(state.log.end)
    if partition.pre_vote:
        return is_up_to_date and hears_no_leader(state)
    candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
    return _decide_standard(state, candidate, is_up_to_date)


def _decide_standard(state: RaftState, candidate: ReplicaKey, is_up_to_date: bool) -> bool:
    role = state.role
    if not isinstance(role, Unattached | Prospective):
        return False
    voted = role.voted
    if voted is not None:
        # The same candidate asks again: its vote stands even if the logs have changed.
        return voted.id == candidate.id and (
            not voted.has_directory_id or voted.directory_id == candidate.directory_id
        )
    if role.leader_id >= 0 or not is_up_to_date:
        return False
    grant_vote(state, candidate)
    return True


# ---- counting ------------------------------------------------------------------------------------


def handle_vote_response(state: RaftState, sent: SentRequest, response: VoteResponse) -> None:
    """Count an answer, or learn the leader from it (R-VOTE-10)."""
    role = state.role
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION and type(role) is Prospective:
        vote_failed(state, sent, response.error_code)
        return
    if not settle_top_level(state, sent, response.error_code):
        return
    partition = answers.only_partition(response.topics, state.config.topic)
    endpoints = (
        answers.endpoints_of(response.node_endpoints, partition.leader_id, state.config.listener)
        if partition
        else ()
    )
    if settle_partition(state, sent, partition, endpoints) is not ResponseOutcome.OWN:
        return
    nominee = state.role
    if partition is None or not isinstance(nominee, Prospective | Candidate):
        return
    nominee.votes.record(sent.destination.key, partition.vote_granted)


def vote_failed(state: RaftState, sent: SentRequest, error: int) -> None:
    """Handle a Vote request that failed: a peer too old for pre-votes ends them (R-VOTE-10)."""
    role = state.role
    if error == ErrorCode.UNSUPPORTED_VERSION and type(role) is Prospective:
        reason = f"{sent.destination.name} does not know pre-votes"
        if state.download is None and not state.download_failures:
            to_candidate(state, reason, has_pre_votes=False)
        else:
            # It would depose a leader that may be alive, and lose: records are missing here.
            _end_prospective(state, role, reason)
    else:
        settle_top_level(state, sent, error)


