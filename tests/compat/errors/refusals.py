"""The errors that each API is refused with: one that Kafka calls retriable, and one that is not."""

from __future__ import annotations

from typing import NamedTuple


class Errors(NamedTuple):
    """Names of Kafka's errors."""

    retriable: str
    fatal: str


_LEADER = Errors("NOT_LEADER_OR_FOLLOWER", "TOPIC_AUTHORIZATION_FAILED")
_GROUP = Errors("COORDINATOR_LOAD_IN_PROGRESS", "GROUP_AUTHORIZATION_FAILED")
_TRANSACTION = Errors("COORDINATOR_LOAD_IN_PROGRESS", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
_TOPIC = Errors("NOT_CONTROLLER", "TOPIC_AUTHORIZATION_FAILED")
_CONTROLLER = Errors("NOT_CONTROLLER", "CLUSTER_AUTHORIZATION_FAILED")
_BROKER = Errors("REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED")
_TOKEN = Errors("NOT_CONTROLLER", "DELEGATION_TOKEN_AUTH_DISABLED")

_BY_ERRORS = {
    _LEADER: (
        "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords",
        "DescribeProducers", "WriteTxnMarkers", "ShareFetch", "ShareAcknowledge",
    ),
    Errors("LEADER_NOT_AVAILABLE", "TOPIC_AUTHORIZATION_FAILED"): (
        "Metadata", "DescribeTopicPartitions",
    ),
    Errors("COORDINATOR_NOT_AVAILABLE", "GROUP_AUTHORIZATION_FAILED"): ("FindCoordinator",),
    _GROUP: (
        "OffsetCommit", "OffsetFetch", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup",
        "DescribeGroups", "DeleteGroups", "OffsetDelete", "ConsumerGroupHeartbeat",
        "ConsumerGroupDescribe", "ShareGroupHeartbeat", "ShareGroupDescribe",
        "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
        "StreamsGroupDescribe", "ListGroups",
    ),
    _TRANSACTION: (
        "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit",
        "DescribeTransactions", "ListTransactions",
    ),
    _TOPIC: ("CreateTopics", "DeleteTopics", "CreatePartitions"),
    _CONTROLLER: (
        "ElectLeaders", "AlterPartitionReassignments", "ListPartitionReassignments",
        "UpdateFeatures", "UnregisterBroker", "AddRaftVoter", "RemoveRaftVoter", "AlterConfigs",
        "IncrementalAlterConfigs", "AlterClientQuotas", "CreateAcls", "DeleteAcls",
        "AlterUserScramCredentials",
    ),
    _BROKER: (
        "ApiVersions", "DescribeCluster", "DescribeConfigs", "DescribeLogDirs",
        "AlterReplicaLogDirs", "ListConfigResources", "DescribeClientQuotas", "DescribeAcls",
        "DescribeUserScramCredentials", "GetTelemetrySubscriptions",
    ),
    Errors("BROKER_NOT_AVAILABLE", "CLUSTER_AUTHORIZATION_FAILED"): ("DescribeQuorum",),
    _TOKEN: (
        "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken",
        "DescribeDelegationToken",
    ),
}  # fmt: skip

REFUSALS = {api: errors for errors, apis in _BY_ERRORS.items() for api in apis}
"""The errors of each API."""
