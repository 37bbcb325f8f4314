"""Builds responses, and reads the parts that requests and responses have in common.

Every response with a partition has the leader and epoch that this node knows, so that the sender
finds the leader in one step (R-VOTE-9, R-FET-17).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from kraftwire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftwire.messages.begin_quorum_epoch_response import NodeEndpoint as BeginNode
from kraftwire.messages.begin_quorum_epoch_response import PartitionData as BeginPartition
from kraftwire.messages.begin_quorum_epoch_response import TopicData as BeginTopic
from kraftwire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftwire.messages.end_quorum_epoch_response import NodeEndpoint as EndNode
from kraftwire.messages.end_quorum_epoch_response import PartitionData as EndPartition
from kraftwire.messages.end_quorum_epoch_response import TopicData as EndTopic
from kraftwire.messages.vote_response import NodeEndpoint as VoteNode
from kraftwire.messages.vote_response import PartitionData as VotePartition
from kraftwire.messages.vote_response import TopicData as VoteTopic
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.config import TopicPartition
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.roles import Leader
from kraftwire.raft.state import RaftState
from kraftwire.wire.message import Message

_Node = TypeVar("_Node", VoteNode, BeginNode, EndNode)


def only_partition(topics: Sequence[Any], topic: TopicPartition) -> Any | None:
    """Return the partition of a message; None unless it is exactly the log's."""
    if len(topics) != 1 or topics[0].topic_name != topic.name:
        return None
    partitions = topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != 0:
        return None
    return partitions[0]


def cluster_id_differs(state: RaftState, cluster_id: str | None) -> bool:
    """Return whether a request names another cluster; null is always accepted."""
    return None not in (cluster_id, state.cluster_id) and cluster_id != state.cluster_id


def endpoints_of(nodes: Sequence[Any], node_id: int, listener: str) -> tuple[Endpoint, ...]:
    """Return a leader's address from a response's NodeEndpoints, empty if it is missing."""
    for node in nodes:
        if node.node_id == node_id:
            endpoint = Endpoint(listener, node.host, node.port)
            if endpoint.is_usable:
                return (endpoint,)
    return ()


def listener_of(event: RequestReceived) -> str:
    """Return the listener whose addresses an answer has; none in version 0, which lacks the field
    (R-VOTE-9)."""
    return event.listener if event.version else ""


def leader_address(state: RaftState, listener: str) -> Endpoint | None:
    """Return the leader's address for the listener that received the request."""
    for endpoint in state.role.leader_endpoints:
        if endpoint.listener == listener:
            return endpoint
    return None


def leader_error(state: RaftState, epoch: int) -> ErrorCode:
    """Return why this node cannot serve a follower of that epoch; NONE if it can (R-FET-6, step
    4)."""
    role = state.role
    if epoch < role.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > role.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if type(role) is not Leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE if state.shutdown_deadline_ms is None else ErrorCode.BROKER_NOT_AVAILABLE


def _nodes(state: RaftState, listener: str, entry: type[_Node]) -> list[_Node]:
    """Return the leader's endpoint as one entry, or none if it is unknown."""
    address = leader_address(state, listener)
    if address is None:
        return []
    return [entry(node_id=state.role.leader_id, host=address.host, port=address.port)]


def vote(
    state: RaftState, listener: str, error: ErrorCode, *, granted: bool = False
) -> VoteResponse:
    """Build the answer to a Vote request."""
    role = state.role
    partition = VotePartition(
        error_code=error, leader_id=role.leader_id, leader_epoch=role.epoch, vote_granted=granted
    )
    topic = VoteTopic(topic_name=state.config.topic.name, partitions=[partition])
    return VoteResponse(topics=[topic], node_endpoints=_nodes(state, listener, VoteNode))


def begin_quorum_epoch(state: RaftState, listener: str, error: ErrorCode) -> Message:
    """Build the answer to a BeginQuorumEpoch request."""
    role = state.role
    partition = BeginPartition(error_code=error, leader_id=role.leader_id, leader_epoch=role.epoch)
    topic = BeginTopic(topic_name=state.config.topic.name, partitions=[partition])
    nodes = _nodes(state, listener, BeginNode)
    return BeginQuorumEpochResponse(topics=[topic], node_endpoints=nodes)


def end_quorum_epoch(state: RaftState, listener: str, error: ErrorCode) -> Message:
    """Build the answer to an EndQuorumEpoch request."""
    role = state.role
    partition = EndPartition(error_code=error, leader_id=role.leader_id, leader_epoch=role.epoch)
    topic = EndTopic(topic_name=state.config.topic.name, partitions=[partition])
    nodes = _nodes(state, listener, EndNode)
    return EndQuorumEpochResponse(topics=[topic], node_endpoints=nodes)
