"""Describing the quorum: the answer to DescribeQuorum.

Only the leader knows how far every replica has come; other nodes name the leader.

Source: KIP-595, KIP-836, KIP-853; Kafka's `DescribeQuorumResponse`; R-DQ-1 to R-DQ-3, R-REP-6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from kraftwire.messages import describe_quorum_response as answer
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.progress import ReplicaProgress
from kraftwire.raft.roles import Leader
from kraftwire.raft.state import RaftState

_TIMESTAMPS_VERSION = 1
_NODES_VERSION = 2


def handle_describe_quorum(state: RaftState, event: RequestReceived) -> None:
    """Answer with the progress of every replica, as the leader sees it."""
    request = cast("DescribeQuorumRequest", event.message)
    if not _is_ours(state, request):
        state.emit(SendReply(event.token, _unknown(request)))
        return
    leader = state.leader
    data = _refusal(state) if leader is None else _described(state, leader, event.version)
    response = answer.DescribeQuorumResponse(
        topics=[answer.TopicData(topic_name=state.config.topic.name, partitions=[data])]
    )
    if leader is not None and event.version >= _NODES_VERSION:
        response.nodes = _nodes(state)
    state.emit(SendReply(event.token, response))


def _is_ours(state: RaftState, request: DescribeQuorumRequest) -> bool:
    if len(request.topics) != 1 or request.topics[0].topic_name != state.config.topic.name:
        return False
    partitions = request.topics[0].partitions
    return len(partitions) == 1 and partitions[0].partition_index == 0


def _unknown(request: DescribeQuorumRequest) -> answer.DescribeQuorumResponse:
    """Refuse all other topics and partitions in a request, one by one (R-DQ-1)."""
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    text = "this quorum replicates another topic"
    return answer.DescribeQuorumResponse(
        topics=[
            answer.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    answer.PartitionData(
                        partition_index=one.partition_index, error_code=error, error_message=text
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _refusal(state: RaftState) -> answer.PartitionData:
    """Build the answer of a node that does not lead.

    Differs from Kafka, which leaves leader and epoch 0: here the caller learns the leader.
    """
    role = state.role
    # A resigned leader no longer leads, and must not be named.
    leader_id = -1 if role.leader_id == state.config.key.id else role.leader_id
    known = "no leader is known" if leader_id < 0 else f"the leader is {leader_id}"
    return answer.PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        error_message=f"this node does not lead the quorum; {known} in epoch {role.epoch}",
        leader_id=leader_id,
        leader_epoch=role.epoch,
        high_watermark=-1,
    )


def _described(state: RaftState, leader: Leader, version: int) -> answer.PartitionData:
    progress = leader.progress
    progress.drop_observers(state.now, state.config.timers.observer_session_timeout_ms)
    return answer.PartitionData(
        leader_id=leader.leader_id,
        leader_epoch=leader.epoch,
        high_watermark=state.high_watermark,
        current_voters=_replicas(state, leader, progress.voters.values(), version),
        observers=_replicas(state, leader, progress.observers.values(), version),
    )


def _replicas(
    state: RaftState, leader: Leader, replicas: Iterable[ReplicaProgress], version: int
) -> list[answer.ReplicaState]:
    """Build the entries of some replicas. Order: by key, so that runs are repeatable."""
    found = []
    for replica in sorted(replicas, key=lambda each: each.key):
        entry = answer.ReplicaState(replica_id=replica.key.id, log_end_offset=replica.end_offset)
        if version >= _TIMESTAMPS_VERSION:
            entry.last_fetch_timestamp = _stamp(state, replica.last_fetch_ms)
            entry.last_caught_up_timestamp = _stamp(state, replica.last_caught_up_ms)
        if version >= _NODES_VERSION:
            entry.replica_directory_id = replica.key.directory_id
        if replica is leader.progress.own:
            entry.log_end_offset = leader.progress.leader_end
        if replica.key.id == leader.leader_id and version >= _TIMESTAMPS_VERSION:
            _stamp_leader(state, entry)
        found.append(entry)
    return found


def _stamp(state: RaftState, at_ms: int) -> int:
    """Return a wall-clock time, -1 if unknown."""
    return at_ms if at_ms < 0 else state.wall_time(at_ms)


def _stamp_leader(state: RaftState, entry: answer.ReplicaState) -> None:
    """Set the times of the leader's own entry: in Kafka both are now.

    According to KIP-836 a leader never fetches; the configuration selects one of the two.
    """
    now = state.wall_time(state.now)
    entry.last_caught_up_timestamp = now
    says_now = state.config.describe_leader_last_fetch == "now"
    entry.last_fetch_timestamp = now if says_now else -1


def _nodes(state: RaftState) -> list[answer.Node]:
    """Return the voters' endpoints; a node knows its own listeners better than a static set."""
    own = state.config.key.id
    nodes = []
    for voter in state.voters:
        is_own = voter.key.id == own and state.config.endpoints
        endpoints = state.config.endpoints if is_own else voter.endpoints
        listeners = [
            answer.Listener(name=at.listener, host=at.host, port=at.port) for at in endpoints
        ]
        nodes.append(answer.Node(node_id=voter.key.id, listeners=listeners))
    return nodes
