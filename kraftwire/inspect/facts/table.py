"""The table of functions that describe messages, by API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.facts import acls, cluster, data, groups, partitions, quorum, share
from kraftwire.inspect.facts.generic import generic
from kraftwire.wire.message import Message

__all__ = ["Facts", "request_facts", "response_facts"]

Facts = Callable[[Any, TopicNames], str]

# API -> functions for request and response; None stands for the generic one.
_WORDS: dict[str, tuple[Facts | None, Facts | None]] = {
    "AddOffsetsToTxn": (groups.add_offsets_to_txn_request, None),
    "AddPartitionsToTxn": (groups.add_partitions_to_txn_request, lambda _body, _names: ""),
    "AddRaftVoter": (quorum.raft_voter_request, None),
    "AlterClientQuotas": (cluster.quotas_request, cluster.quotas_response),
    "AlterConfigs": (cluster.configs_request, lambda _body, _names: ""),
    "AlterPartition": (quorum.alter_partition_request, quorum.alter_partition_response),
    "AlterPartitionReassignments": (
        partitions.alter_reassignments_request, partitions.alter_reassignments_response
    ),
    "AlterReplicaLogDirs": (
        partitions.alter_replica_log_dirs_request, partitions.alter_replica_log_dirs_response
    ),
    "ApiVersions": (cluster.api_versions_request, cluster.api_versions_response),
    "AssignReplicasToDirs": (quorum.assign_replicas_request, quorum.assign_replicas_response),
    "BeginQuorumEpoch": (quorum.begin_quorum_epoch_request, quorum.leader_and_epoch_response),
    "BrokerHeartbeat": (quorum.broker_heartbeat_request, quorum.broker_heartbeat_response),
    "BrokerRegistration": (
        quorum.broker_registration_request, quorum.broker_registration_response
    ),
    "ConsumerGroupDescribe": (cluster.names_request, groups.described_groups),
    "ConsumerGroupHeartbeat": (groups.group_heartbeat_request, groups.group_heartbeat_response),
    "ControllerRegistration": (quorum.controller_registration_request, None),
    "CreateAcls": (acls.create_acls_request, None),
    "CreatePartitions": (cluster.names_request, None),
    "CreateTopics": (cluster.create_topics_request, cluster.topics_response),
    "DeleteAcls": (acls.delete_acls_request, acls.delete_acls_response),
    "DeleteGroups": (cluster.names_request, None),
    "DeleteRecords": (partitions.delete_records_request, partitions.delete_records_response),
    "DeleteTopics": (cluster.delete_topics_request, lambda _body, _names: ""),
    "DeleteShareGroupState": (share.state_request, share.state_response),
    "DescribeAcls": (acls.describe_acls_request, acls.describe_acls_response),
    "DescribeClientQuotas": (None, cluster.quotas_response),
    "DescribeCluster": (None, cluster.describe_cluster_response),
    "DescribeConfigs": (cluster.configs_request, lambda _body, _names: ""),
    "DescribeGroups": (cluster.names_request, groups.described_groups),
    "DescribeQuorum": (None, quorum.describe_quorum_response),
    "DescribeTopicPartitions": (cluster.names_request, cluster.topics_response),
    "EndQuorumEpoch": (quorum.end_quorum_epoch_request, quorum.leader_and_epoch_response),
    "EndTxn": (groups.end_txn_request, None),
    "Envelope": (quorum.envelope_request, lambda _body, _names: ""),
    "Fetch": (data.fetch_request, data.fetch_response),
    "FetchSnapshot": (quorum.fetch_snapshot_request, quorum.fetch_snapshot_response),
    "FindCoordinator": (groups.find_coordinator_request, groups.find_coordinator_response),
    "Heartbeat": (groups.group_request, None),
    "IncrementalAlterConfigs": (cluster.configs_request, lambda _body, _names: ""),
    "InitializeShareGroupState": (share.state_request, share.state_response),
    "InitProducerId": (groups.init_producer_id_request, groups.init_producer_id_response),
    "JoinGroup": (groups.join_group_request, groups.join_group_response),
    "LeaveGroup": (groups.leave_group_request, lambda _body, _names: ""),
    "ListPartitionReassignments": (
        partitions.list_reassignments_request, partitions.list_reassignments_response
    ),
    "ListOffsets": (data.list_offsets_request, data.list_offsets_response),
    "Metadata": (cluster.metadata_request, cluster.metadata_response),
    "OffsetCommit": (groups.offset_commit_request, lambda _body, _names: ""),
    "OffsetFetch": (groups.offset_fetch_request, groups.offset_fetch_response),
    "OffsetForLeaderEpoch": (
        data.offset_for_leader_epoch_request, data.offset_for_leader_epoch_response
    ),
    "Produce": (data.produce_request, data.produce_response),
    "ReadShareGroupState": (share.state_request, share.state_response),
    "ReadShareGroupStateSummary": (share.state_request, share.state_response),
    "RemoveRaftVoter": (quorum.raft_voter_request, None),
    "SaslAuthenticate": (cluster.sasl_token, cluster.sasl_token),
    "SaslHandshake": (cluster.sasl_handshake_request, cluster.sasl_handshake_response),
    "ShareAcknowledge": (share.acknowledge_request, share.acknowledge_response),
    "ShareFetch": (share.fetch_request, share.fetch_response),
    "ShareGroupDescribe": (cluster.names_request, groups.described_groups),
    "ShareGroupHeartbeat": (groups.group_heartbeat_request, groups.group_heartbeat_response),
    "StreamsGroupDescribe": (cluster.names_request, groups.described_groups),
    "StreamsGroupHeartbeat": (
        groups.streams_heartbeat_request, groups.streams_heartbeat_response
    ),
    "SyncGroup": (groups.sync_group_request, None),
    "TxnOffsetCommit": (groups.txn_offset_commit_request, lambda _body, _names: ""),
    "UpdateRaftVoter": (quorum.raft_voter_request, None),
    "Vote": (quorum.vote_request, quorum.vote_response),
    "WriteShareGroupState": (share.state_request, share.state_response),
    "WriteTxnMarkers": (groups.write_txn_markers_request, lambda _body, _names: ""),
}

_BY_KEY = {key: _WORDS.get(name, (None, None)) for key, name in messages.API_NAMES.items()}
_REQUESTS = {key: request or generic for key, (request, _) in _BY_KEY.items()}
_RESPONSES = {key: response or generic for key, (_, response) in _BY_KEY.items()}


def request_facts(api_key: int, body: Message, names: TopicNames) -> str:
    """Describe a request in a few words."""
    return _REQUESTS[api_key](body, names)


def response_facts(api_key: int, body: Message, names: TopicNames) -> str:
    """Describe a response in a few words, without its errors."""
    return _RESPONSES[api_key](body, names)
