"""Listeners that are marked read-only: the APIs that they refuse, and with which errors.

Such a listener refuses whatever changes the metadata log, the voters, an epoch or a vote, and what
counts as a sign of life of a replica. The errors are those of a Kafka that has denied the operation
to the sender; checks that only validate are refused too, as in Kafka.

Source: Kafka's `KafkaApis` and `ControllerApis`, where they authorize ALTER, CREATE, DELETE and
CLUSTER_ACTION.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftwire import messages
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers.unsupported import Refusal, handler_of
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import Error
from kraftwire.protocol.versions import fetching_replica

_TEXT = "this listener is read-only"
_CLUSTER = Error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, _TEXT)
_TOKEN = Error(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, _TEXT)
_TOPIC = Error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, _TEXT)


def _whole_request(_: Request, __: Context) -> Error:
    return _CLUSTER


def _config_error(resource: Any, _: Request, __: Context) -> Error:
    return _TOPIC if resource.resource_type == TOPIC_RESOURCE else _CLUSTER


_BY_REFUSAL = {
    Refusal(_TOPIC): ("CreateTopics", "DeleteTopics", "CreatePartitions", "Produce"),
    Refusal(_config_error): ("AlterConfigs", "IncrementalAlterConfigs"),
    Refusal(_TOKEN): ("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"),
    Refusal(_CLUSTER, _whole_request): (
        *("AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter", "UpdateFeatures"),
        *("UnregisterBroker", "UnregisterController", "ElectLeaders"),
        "AlterPartitionReassignments",
        *("CreateAcls", "DeleteAcls", "InitProducerId", "AlterClientQuotas"),
        "AlterUserScramCredentials",
        *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch", "FetchSnapshot"),
        *("BrokerRegistration", "BrokerHeartbeat", "ControllerRegistration"),
        *("AlterPartition", "AssignReplicasToDirs", "AllocateProducerIds", "Envelope"),
    ),
}

CHANGING: Mapping[str, Refusal] = {
    name: refusal for refusal, names in _BY_REFUSAL.items() for name in names
}
"""The refusals by name of the API; Fetch and FetchSnapshot only in the name of a replica."""

_HANDLERS: dict[int, Handler] = {
    key: handler_of(CHANGING[name]) for key, name in messages.API_NAMES.items() if name in CHANGING
}


def refuser(request: Request) -> Handler | None:
    """Return the handler that refuses a request; None for one that changes nothing."""
    message = request.message
    if isinstance(message, FetchRequest) and fetching_replica(message) < 0:
        return None
    if isinstance(message, FetchSnapshotRequest) and message.replica_id < 0:
        return None
    return _HANDLERS.get(request.api_key)
