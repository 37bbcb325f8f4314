"""The APIs and versions that a node offers, by kind of listener.

Two tables lead from API key to lowest and highest version. A request of any other API closes the
connection, as in Kafka (R-SRV-2).

Source: answers of Kafka's listeners to ApiVersions; R-SRV-1.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire import messages

Versions = Mapping[int, tuple[int, int]]


def _by_key(by_name: Mapping[str, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    keys = {name: key for key, name in messages.API_NAMES.items()}
    return dict(sorted((keys[name], versions) for name, versions in by_name.items()))


# The Raft core answers these. A consumer's Fetch is the exception, see `route`.
_RAFT = {
    "Fetch": (4, 18),
    "Vote": (0, 2),
    "BeginQuorumEpoch": (0, 1),
    "EndQuorumEpoch": (0, 1),
    "DescribeQuorum": (0, 2),
    "FetchSnapshot": (0, 1),
    "AddRaftVoter": (0, 1),
    "RemoveRaftVoter": (0, 0),
    "UpdateRaftVoter": (0, 0),
}

# Answered the same way on both kinds of listener.
_COMMON = {
    "SaslHandshake": (0, 1),
    "ApiVersions": (0, 5),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DescribeAcls": (1, 3),
    "CreateAcls": (1, 3),
    "DeleteAcls": (1, 3),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "SaslAuthenticate": (0, 2),
    "CreatePartitions": (0, 3),
    "ElectLeaders": (0, 2),
    "IncrementalAlterConfigs": (0, 1),
    "AlterPartitionReassignments": (0, 1),
    "ListPartitionReassignments": (0, 0),
    "UpdateFeatures": (0, 2),
    "DescribeCluster": (0, 2),
    "UnregisterBroker": (0, 0),
    "UnregisterController": (0, 0),
}

CONTROLLER_VERSIONS: Versions = _by_key(
    _RAFT
    | _COMMON
    | {
        "AlterPartition": (2, 3),
        "AlterClientQuotas": (0, 1),
        "AlterUserScramCredentials": (0, 0),
        "CreateDelegationToken": (1, 3),
        "RenewDelegationToken": (1, 2),
        "ExpireDelegationToken": (1, 2),
        "Envelope": (0, 0),
        "BrokerRegistration": (0, 4),
        "BrokerHeartbeat": (0, 2),
        "AllocateProducerIds": (0, 0),
        "ControllerRegistration": (0, 0),
        "AssignReplicasToDirs": (0, 0),
    }
)

# Produce ends at 11 because later versions have topic ids and the second version of transactions
# (KIP-890). librdkafka compresses only if Produce begins at 0 and FindCoordinator is offered.
# OffsetFetch and similar APIs are left out because there are no groups.
BROKER_VERSIONS: Versions = _by_key(
    _COMMON
    | {
        "Produce": (0, 11),
        "Fetch": (4, 18),
        "ListOffsets": (1, 11),
        "Metadata": (0, 13),
        "FindCoordinator": (0, 6),
        "ListGroups": (0, 5),
        "InitProducerId": (0, 5),
        "OffsetForLeaderEpoch": (2, 4),
        "DescribeLogDirs": (1, 5),
        "DescribeQuorum": (0, 2),
        "ListConfigResources": (0, 1),
        "DescribeTopicPartitions": (0, 0),
        "AddRaftVoter": (0, 1),
        "RemoveRaftVoter": (0, 0),
    }
)

RAFT_APIS = frozenset(_by_key(_RAFT))


def offered(*, is_controller: bool, is_client: bool) -> Versions:
    """Return the versions offered on a listener, which may serve peers, clients or both.

    An API on both kinds of listener has one range, so the union never exceeds what is answered.
    """
    if not is_controller:
        return BROKER_VERSIONS
    if not is_client:
        return CONTROLLER_VERSIONS
    return dict(sorted((BROKER_VERSIONS | CONTROLLER_VERSIONS).items()))  # type: ignore[operator]
