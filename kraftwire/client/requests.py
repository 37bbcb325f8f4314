"""The requests of admin calls, and the reading of their responses.

The leader's metadata log is described by a Fetch at offset 0 without a replica id: the response has
the log start offset, and names the newest snapshot if there is one. The leader does not track such
a Fetch (R-FET-7, R-FET-12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftwire.client.cluster import error_detail, refusal
from kraftwire.client.results import (
    FeatureInfo,
    LogInfo,
    PartitionInfo,
    QuorumInfo,
    ReplicaInfo,
    TopicInfo,
    VersionRange,
)
from kraftwire.errors import ApiError
from kraftwire.messages import (
    add_raft_voter_request,
    describe_quorum_request,
    describe_quorum_response,
    fetch_request,
    update_raft_voter_request,
)
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse, PartitionData
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.unregister_controller_response import UnregisterControllerResponse
from kraftwire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftwire.messages.update_features_response import UpdateFeaturesResponse
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.offsets import OffsetAndEpoch
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

    Raises: WireError for an invalid directory id.
    """
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


def check_controllers_changed(response: Message) -> None:
    """Read the answer to a change of voters or of registered controllers.

    Raises: NotLeaderError if the node does not lead, which proves that nothing was changed;
    ApiError if it refuses.
    """
    if isinstance(response, UpdateRaftVoterResponse):
        code, message = response.error_code, None
        leader = response.current_leader
        hint = None if leader is None or leader.leader_id < 0 else leader.leader_id
    else:
        assert isinstance(
            response, AddRaftVoterResponse | RemoveRaftVoterResponse | UnregisterControllerResponse
        )
        code, message, hint = response.error_code, response.error_message, None
    if code == ErrorCode.NONE:
        return
    error = refusal(code, message)
    if code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        raise NotLeaderError(error_detail(error), hint)
    raise error


def quorum_info(response: Message) -> QuorumInfo:
    """Read the answer to DescribeQuorum.

    Raises: NotLeaderError if another node leads, or none does; ApiError for other errors.
    """
    assert isinstance(response, DescribeQuorumResponse)
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


def feature_info(response: Message) -> FeatureInfo:
    """Read the features in an answer. Raises: ApiError if the answer is an error."""
    assert isinstance(response, ApiVersionsResponse)
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    epoch = response.finalized_features_epoch
    return FeatureInfo(
        finalized={each.name: each.max_version_level for each in response.finalized_features},
        supported={
            each.name: VersionRange(each.min_version, each.max_version)
            for each in response.supported_features
        },
        epoch=None if epoch < 0 else epoch,
    )


def features_request(
    levels: Mapping[str, int], validate_only: bool, timeout_ms: int
) -> UpdateFeaturesRequest:
    """Build the request to raise feature levels."""
    return UpdateFeaturesRequest(
        timeout_ms=timeout_ms,
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level)
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )


def check_features_updated(response: Message) -> None:
    """Read the answer to UpdateFeatures.

    Raises: NotLeaderError if the node is not the active controller; ApiError if it refuses.
    """
    assert isinstance(response, UpdateFeaturesResponse)
    if response.error_code == ErrorCode.NOT_CONTROLLER:
        refused = refusal(response.error_code, response.error_message)
        raise NotLeaderError(error_detail(refused), None)
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, response.error_message)
    # Up to v1 each feature has a separate result.
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            refused = refusal(result.error_code, result.error_message)
            raise ApiError(result.error_code, f"{result.feature}: {error_detail(refused)}")


def log_request(leader_epoch: int) -> FetchRequest:
    """Build the request for the beginning of the log of an epoch's leader; answered at once."""
    partition = fetch_request.FetchPartition(
        current_leader_epoch=leader_epoch, fetch_offset=0, last_fetched_epoch=0
    )
    # The name is for versions before 13; a version omits fields that it lacks.
    topic = fetch_request.FetchTopic(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=0, topics=[topic])


def log_info(response: Message) -> LogInfo:
    """Read the answer. Raises: ApiError if it is an error, or about another topic."""
    partition = _fetched_partition(response)
    if partition.error_code != ErrorCode.NONE:
        raise refusal(partition.error_code, None)
    id = partition.snapshot_id
    snapshot = None
    if id is not None and id.end_offset >= 0 and id.epoch >= 0:
        snapshot = OffsetAndEpoch(id.end_offset, id.epoch)
    return LogInfo(max(0, partition.log_start_offset), partition.high_watermark, snapshot)


def known_leader(response: Message) -> tuple[int, int | None]:
    """Read the epoch and the leader that a node knows, from its answer to a `log_request`.

    The leader is None if it knows none. Raises: ApiError if the answer names no epoch.
    """
    partition = _fetched_partition(response)
    leader = partition.current_leader
    if leader is None or leader.leader_epoch < 0:
        raise refusal(partition.error_code, None)
    return leader.leader_epoch, leader.leader_id if leader.leader_id >= 0 else None


def is_led(response: Message) -> bool:
    """Return whether a `log_request` was answered by the leader of its epoch."""
    return _fetched_partition(response).error_code == ErrorCode.NONE


def _fetched_partition(response: Message) -> PartitionData:
    assert isinstance(response, FetchResponse)
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    for topic in response.responses:
        if topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC:
            for partition in topic.partitions:
                return partition
    raise ApiError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer says nothing of partition {METADATA_TOPIC}-0"
    )


def topics_request(names: Iterable[str] | None) -> MetadataRequest:
    """Build the request for topics by name, or for all; it never creates topics."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def topic_infos(response: Message, include_internal: bool) -> list[TopicInfo]:
    """Return the topics of an answer, sorted by name. Raises: ApiError if it has an error."""
    assert isinstance(response, MetadataResponse)
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    topics = [topic for topic in response.topics if include_internal or not topic.is_internal]
    for topic in topics:
        if topic.error_code != ErrorCode.NONE:
            raise refusal(topic.error_code, f"topic {topic.name}")
    return sorted(map(_topic_info, topics), key=lambda topic: topic.name)


def _topic_info(topic: MetadataResponseTopic) -> TopicInfo:
    partitions = sorted(map(_partition_info, topic.partitions), key=lambda one: one.index)
    return TopicInfo(
        name=topic.name or "",
        topic_id=uuid_to_text(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(partitions),
    )


def _partition_info(partition: MetadataResponsePartition) -> PartitionInfo:
    return PartitionInfo(
        index=partition.partition_index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        in_sync=tuple(partition.isr_nodes),
    )
