"""What each API asks: the operation and the resource, and how a refusal looks; one table.

Rules SEC-A10 to SEC-A12. A request asks for one operation on the cluster, or for one on each of its
elements: then those that are refused are answered with an error, and the others as if they stood
alone. An API without a row asks for ALTER on the cluster, so that a forgotten one is closed.

Source: Kafka's `ControllerApis` and `KafkaApis`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.config_resources import GROUP_RESOURCE, LOGGER_RESOURCE, TOPIC_RESOURCE
from kraftwire.protocol.endpoint import ENDPOINT_CONTROLLER
from kraftwire.protocol.entities import TopicName
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import Error, answered_arrays, refusal, requested_arrays
from kraftwire.protocol.versions import fetching_replica
from kraftwire.security.acls import CLUSTER_NAME, OPERATIONS_UNKNOWN, Operation, ResourceType
from kraftwire.wire.message import Message

_CODES = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Access(NamedTuple):
    """An operation on a resource."""

    operation: int
    resource_type: int
    name: str

    @property
    def code(self) -> ErrorCode:
        """The error of a refusal."""
        return _CODES[self.resource_type]

    def __str__(self) -> str:
        operation = Operation.NAMES[self.operation]
        if self.resource_type == ResourceType.CLUSTER:
            return f"{operation} on the cluster"
        return f"{operation} on {ResourceType.NAMES[self.resource_type]} {self.name}"


CLUSTER = (ResourceType.CLUSTER, CLUSTER_NAME)

Allows = Callable[[Access], bool]
"""Whether the sender of a request may do something."""

# The access that an element needs, None for none. Arguments: element, request, topic names.
_AccessOf = Callable[[Any, Any, TopicName], Access | None]


@dataclass(frozen=True, slots=True)
class AccessRule:
    """What a request of one API asks.

    `cluster` is an operation on the cluster, for the whole request; if there is `element`, too, it
    suffices for all elements, and each is asked otherwise; if `is_element`, a request without any
    is an element itself. From version `rest_from` on the answer has more than elements, so that it
    is wanted without any.
    """

    cluster: int | None = None
    element: _AccessOf | None = None
    is_element: bool = False
    rest_from: int | None = None


def _topic(operation: int) -> _AccessOf:
    """Elements are topics, by name or by id; an unknown id needs no right."""

    def access_of(element: Any, _: Any, topic_name: TopicName) -> Access | None:
        if isinstance(element, str):
            name: str | None = element
        else:
            name = getattr(element, "name", None) or getattr(element, "topic", None)
            if not name and hasattr(element, "topic_id"):
                name = topic_name(element.topic_id)
            elif name is None:
                name = ""
        return None if name is None else Access(operation, ResourceType.TOPIC, name)

    return access_of


def _config(operation: int) -> _AccessOf:
    def access_of(element: Any, _: Any, __: TopicName) -> Access | None:
        kind, name = element.resource_type, element.resource_name
        if kind == TOPIC_RESOURCE:
            return Access(operation, ResourceType.TOPIC, name)
        if kind == GROUP_RESOURCE:
            return Access(operation, ResourceType.GROUP, name)
        is_change_of_logger = kind == LOGGER_RESOURCE and operation == Operation.ALTER_CONFIGS
        wanted = Operation.CLUSTER_ACTION if is_change_of_logger else operation
        return Access(wanted, *CLUSTER)

    return access_of


def _coordinator(element: Any, request: Any, _: TopicName) -> Access | None:
    """Elements are keys, or the request itself has one."""
    is_transaction = request.key_type == 1
    kind = ResourceType.TRANSACTIONAL_ID if is_transaction else ResourceType.GROUP
    name = element if isinstance(element, str) else request.key
    return Access(Operation.DESCRIBE, kind, name)


def _producer_id(_: Any, request: Any, __: TopicName) -> Access | None:
    if request.transactional_id is None:
        return Access(Operation.IDEMPOTENT_WRITE, *CLUSTER)
    return Access(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)


def _token_owner(_: Any, request: Any, __: TopicName) -> Access | None:
    """Another owner than who asks, who needs no right for that (SEC-A15)."""
    if not request.owner_principal_name:
        return None
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    return Access(Operation.CREATE_TOKENS, ResourceType.USER, owner)


_REPLICA = AccessRule(Operation.CLUSTER_ACTION)
_CONSUMER = AccessRule(element=_topic(Operation.READ))
_CONTROLLERS_DESCRIBED = AccessRule(Operation.ALTER)
_UNLISTED = AccessRule(Operation.ALTER)
_FREE = AccessRule()

RULES: Mapping[str, AccessRule] = {
    **dict.fromkeys(("ApiVersions", "SaslHandshake", "SaslAuthenticate"), _FREE),
    # Lists of groups and brokers are filtered, not refused.
    **dict.fromkeys(("DescribeCluster", "ListGroups"), _FREE),
    **dict.fromkeys(
        (
            *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "UpdateRaftVoter"),
            *("AlterPartition", "BrokerRegistration", "BrokerHeartbeat", "ControllerRegistration"),
            *("AllocateProducerIds", "AssignReplicasToDirs", "Envelope"),
        ),
        _REPLICA,
    ),
    "Fetch": _CONSUMER,
    **dict.fromkeys(
        (
            *("AddRaftVoter", "RemoveRaftVoter", "UpdateFeatures"),
            *("UnregisterBroker", "UnregisterController"),
            *("ElectLeaders", "AlterPartitionReassignments", "AlterUserScramCredentials"),
            *("CreateAcls", "DeleteAcls"),
        ),
        AccessRule(Operation.ALTER),
    ),
    "CreateDelegationToken": AccessRule(element=_token_owner, is_element=True),
    **dict.fromkeys(("RenewDelegationToken", "ExpireDelegationToken"), _FREE),
    "AlterClientQuotas": AccessRule(Operation.ALTER_CONFIGS),
    **dict.fromkeys(
        ("DescribeQuorum", "ListPartitionReassignments", "DescribeAcls", "DescribeLogDirs"),
        AccessRule(Operation.DESCRIBE),
    ),
    "ListConfigResources": AccessRule(Operation.DESCRIBE_CONFIGS),
    "CreateTopics": AccessRule(Operation.CREATE, _topic(Operation.CREATE)),
    "DeleteTopics": AccessRule(Operation.DELETE, _topic(Operation.DELETE)),
    "CreatePartitions": AccessRule(element=_topic(Operation.ALTER)),
    **dict.fromkeys(
        ("AlterConfigs", "IncrementalAlterConfigs"),
        AccessRule(element=_config(Operation.ALTER_CONFIGS)),
    ),
    "DescribeConfigs": AccessRule(element=_config(Operation.DESCRIBE_CONFIGS)),
    "Produce": AccessRule(element=_topic(Operation.WRITE)),
    "InitProducerId": AccessRule(element=_producer_id, is_element=True),
    "FindCoordinator": AccessRule(element=_coordinator, is_element=True),
    **dict.fromkeys(
        ("ListOffsets", "OffsetForLeaderEpoch", "DescribeTopicPartitions"),
        AccessRule(element=_topic(Operation.DESCRIBE)),
    ),
    "Metadata": AccessRule(element=_topic(Operation.DESCRIBE), rest_from=1),
}


def rule_of(message: Message, *, is_controller_only: bool) -> AccessRule:
    """Return what a request asks on a listener; `is_controller_only` if it serves no clients."""
    name = messages.API_NAMES[message.API_KEY]
    if isinstance(message, FetchRequest):
        is_replica = is_controller_only or fetching_replica(message) >= 0
        return _REPLICA if is_replica else _CONSUMER
    if name == "DescribeCluster":
        endpoint_type = getattr(message, "endpoint_type", ENDPOINT_CONTROLLER)
        is_for_controllers = is_controller_only or endpoint_type == ENDPOINT_CONTROLLER
        return _CONTROLLERS_DESCRIBED if is_for_controllers else _FREE
    return RULES.get(name, _UNLISTED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The permitted part of a request, and the response to the refused part; each may be None."""

    permitted: Message | None
    refused: Message | None = None
    version: int = 0

    def joined_response(self, answer: Message) -> Message:
        """Add the refused elements to the answer to what was permitted."""
        if self.refused is None:
            return answer
        for array in answered_arrays(answer, self.version):
            getattr(answer, array).extend(getattr(self.refused, array))
        return answer


@Divided
def judge_request(
    message: Message, version: int, rule: AccessRule, allows: Allows, topic_name: TopicName
) -> Pieces[Verdict]:
    """Check what a request asks for, and divide it into a permitted and a refused part."""
    if rule.cluster is not None:
        access = Access(rule.cluster, *CLUSTER)
        if allows(access):
            return Verdict(message)
        if rule.element is None:
            return _all_refused(message, version, access)
    if rule.element is None:
        return Verdict(message)
    if not any(getattr(message, array) for array in requested_arrays(message, version)):
        wanted = rule.element(message, message, topic_name) if rule.is_element else None
        if wanted is None or allows(wanted):
            return Verdict(message)
        return _all_refused(message, version, wanted)
    verdict: Verdict = yield from _judged_by_element(message, version, rule, allows, topic_name)
    return verdict


def _judged_by_element(
    message: Message, version: int, rule: AccessRule, allows: Allows, topic_name: TopicName
) -> Pieces[Verdict]:
    assert rule.element is not None
    errors: dict[int, Error] = {}
    permitted, denied = copy(message), copy(message)
    arrays = requested_arrays(message, version)
    for array in arrays:
        elements = getattr(message, array) or []
        for element in elements:
            yield
            access = rule.element(element, message, topic_name)
            if access is not None and not allows(access):
                errors[id(element)] = _error(access)
        setattr(permitted, array, [one for one in elements if id(one) not in errors])
        setattr(denied, array, [one for one in elements if id(one) in errors])
    if not errors:
        return Verdict(message)
    refused = refusal(denied, version, lambda one: errors[id(one)])
    is_wanted = any(getattr(permitted, array) for array in arrays) or (
        rule.rest_from is not None and version >= rule.rest_from
    )
    return Verdict(permitted if is_wanted else None, refused, version)


def _all_refused(message: Message, version: int, access: Access) -> Verdict:
    error = _error(access)
    return Verdict(None, refusal(message, version, lambda _: error, error))


def _error(access: Access) -> Error:
    return Error(access.code, f"not authorized: this needs {access!s:.300}")


@Divided
def conceal_response(
    response: Any, allows: Allows, operations_of: Callable[[int, str], int]
) -> Pieces[None]:
    """Reduce an answer to what its reader may see: topics, groups, and authorized operations.

    A topic or group that was not asked for by name is left out if it may not be described; of a new
    topic its configuration, if that may not be (C-TOP-7).
    """
    name = messages.API_NAMES[response.API_KEY]
    if name in ("Metadata", "DescribeTopicPartitions"):
        describe = _topic(Operation.DESCRIBE)
        seen = []
        for topic in response.topics:
            yield
            access = None if topic.error_code else describe(topic, None, lambda _: None)
            if access is not None and not allows(access):
                continue
            seen.append(topic)
            if topic.topic_authorized_operations != OPERATIONS_UNKNOWN:
                bits = operations_of(ResourceType.TOPIC, topic.name or "")
                topic.topic_authorized_operations = bits
        response.topics = seen
    if name == "ListGroups" and not allows(Access(Operation.DESCRIBE, *CLUSTER)):
        response.groups = [
            group
            for group in response.groups
            if allows(Access(Operation.DESCRIBE, ResourceType.GROUP, group.group_id))
        ]
    for topic in response.topics if name == "CreateTopics" else ():
        yield
        read = Access(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
        if not topic.error_code and not allows(read):
            topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []
    operations = getattr(response, "cluster_authorized_operations", OPERATIONS_UNKNOWN)
    if operations != OPERATIONS_UNKNOWN:
        response.cluster_authorized_operations = operations_of(*CLUSTER)
