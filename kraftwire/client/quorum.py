"""Requests about the metadata quorum, and the reading of their responses."""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.client.cluster import error_detail, refusal
from kraftwire.client.results import QuorumInfo, ReplicaInfo
from kraftwire.errors import ApiError
from kraftwire.messages import (
    add_raft_voter_request,
    describe_quorum_request,
    describe_quorum_response,
    update_raft_voter_request,
)
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.config import METADATA_TOPIC
from kraftwire.raft.voters import Endpoint
from kraftwire.wire.json_form import uuid_from_text, uuid_to_text
from kraftwire.wire.message import Message


class NotLeaderError(ApiError):
    """The node does not lead the quorum; `leader_id` is None if the node does not know the leader.
    """

    def __init__(self, detail: str, leader_id: int | None) -> None:
        self.leader_id = leader_id
        super().__init__(ErrorCode.NOT_LEADER_OR_FOLLOWER, detail)


def describe_request() -> DescribeQuorumRequest:
    """Build the request for the state of the metadata quorum."""
    partition = describe_quorum_request.PartitionData(partition_index=0)
    topic = describe_quorum_request.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def add_request(
    voter_id: int,
    directory_id: str,
    endpoints: Iterable[Endpoint],
    *,
    cluster_id: str | None,
    timeout_ms: int,
    ack_when_committed: bool,
) -> AddRaftVoterRequest:
    """Build the request to add a voter. Raises: WireError for an invalid directory id."""
    listeners = [
        add_raft_voter_request.Listener(name=each.listener, host=each.host, port=each.port)
        for each in endpoints
    ]
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter_id,
        voter_directory_id=uuid_from_text(directory_id),
        listeners=listeners,
        ack_when_committed=ack_when_committed,
    )


def remove_request(
    voter_id: int, directory_id: str, cluster_id: str | None
) -> RemoveRaftVoterRequest:
    """Build the request to remove a voter. Raises: WireError for an invalid directory id."""
    return RemoveRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        voter_directory_id=uuid_from_text(directory_id),
    )


def update_request(
    voter_id: int,
    directory_id: str,
    endpoints: Iterable[Endpoint],
    *,
    kraft_versions: tuple[int, int],
    leader_epoch: int,
    cluster_id: str | None,
) -> UpdateRaftVoterRequest:
    """Build the request to update a voter's endpoints and range of kraft.version.

    Raises: WireError for an invalid directory id. """
    listeners = [
        update_raft_voter_request.Listener(name=each.listener, host=each.host, port=each.port)
        for each in endpoints
    ]
    low, high = kraft_versions
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=leader_epoch,
        voter_id=voter_id,
        voter_directory_id=uuid_from_text(directory_id),
        listeners=listeners,
        kraft_version_feature=update_raft_voter_request.KRaftVersionFeature(
            min_supported_version=low, max_supported_version=high
        ),
    )


def check_voters_changed(response: Message) -> None:
    """Read the answer to a voter change.

    Raises: NotLeaderError if the node does not lead, which proves that nothing was changed;
    ApiError if it refuses.
    """
    if isinstance(response, UpdateRaftVoterResponse):
        code, message = response.error_code, None
        leader = response.current_leader
        hint = None if leader is None or leader.leader_id < 0 else leader.leader_id
    else:
        assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
        code, message, hint = response.error_code, response.error_message, None
    if code == ErrorCode.NONE:
        return
    error = refusal(code, message)
    if code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        raise NotLeaderError(error_detail(error), hint)
    raise error


def quorum_info(response: DescribeQuorumResponse) -> QuorumInfo:
    """Read the answer to DescribeQuorum.

    Raises: NotLeaderError if another node leads, or none does; ApiError for other errors.
    """
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, response.error_message)
    partition = _metadata_partition(response)
    if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise NotLeaderError(
            error_detail(refusal(partition.error_code, None)), _hint(partition)
        )
    if partition.error_code != ErrorCode.NONE:
        raise refusal(partition.error_code, partition.error_message)
    endpoints = {
        node.node_id: tuple(Endpoint(each.name, each.host, each.port) for each in node.listeners)
        for node in response.nodes
    }
    return QuorumInfo(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=tuple(map(_replica, partition.current_voters)),
        observers=tuple(map(_replica, partition.observers)),
        endpoints=endpoints,
    )


def _metadata_partition(
    response: DescribeQuorumResponse,
) -> describe_quorum_response.PartitionData:
    for topic in response.topics:
        for partition in topic.partitions:
            if topic.topic_name == METADATA_TOPIC and partition.partition_index == 0:
                return partition
    raise ApiError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer says nothing of partition {METADATA_TOPIC}-0"
    )


def _hint(partition: describe_quorum_response.PartitionData) -> int | None:
    # Kafka's controllers leave these fields at their default of 0, and no leader has epoch 0.
    known = partition.leader_id >= 0 and partition.leader_epoch > 0
    return partition.leader_id if known else None


def _replica(state: describe_quorum_response.ReplicaState) -> ReplicaInfo:
    return ReplicaInfo(
        id=state.replica_id,
        directory_id=uuid_to_text(state.replica_directory_id),
        log_end_offset=state.log_end_offset,
        last_fetch_ms=_time_or_none(state.last_fetch_timestamp),
        last_caught_up_ms=_time_or_none(state.last_caught_up_timestamp),
    )


def _time_or_none(timestamp_ms: int) -> int | None:
    return None if timestamp_ms < 0 else timestamp_ms
