"""What each API asks: the operation and the resource, and how a refusal looks; one table.

Rules SEC-A10 to SEC-A12. A request asks for one operation on the cluster, or for one on each of its
elements: then those that are refused are answered with an error, and the others as if they stood
alone. An API without a row asks for ALTER on the cluster, so that a forgotten one is closed.

Source: Kafka's `ControllerApis` and `KafkaApis`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.config_resources import GROUP_RESOURCE, LOGGER_RESOURCE, TOPIC_RESOURCE
from kraftwire.protocol.endpoint import ENDPOINT_CONTROLLER
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import Error, refusal
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

TopicName = Callable[[bytes], str | None]
"""The name of the topic with an id, None for an unknown one."""

# What an element asks; None for what nobody is refused. Arguments: element, request, topic names.
_AccessOf = Callable[[Any, Any, TopicName], Access | None]


@dataclass(frozen=True, slots=True)
class AccessRule:
    """What a request of one API asks.

    `cluster` is an operation on the cluster, for the whole request; if there is `element`, too, it
    suffices for all elements, and each is asked otherwise. `elements` maps a path of arrays in the
    request to one in the response; if `is_element`, a request without any is an element itself.
    From version `rest_from` on the answer has more than elements, so that it is wanted without any.
    """

    cluster: int | None = None
    element: _AccessOf | None = None
    elements: Mapping[str, str] = field(default_factory=dict)
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


_PARTITIONS = {"topics.partitions": "topics.partitions"}
_CONFIG_RESOURCES = {"resources": "responses"}
_FETCHED = {"topics.partitions": "responses.partitions"}
_REPLICA = AccessRule(Operation.CLUSTER_ACTION)
_FETCHING_REPLICA = AccessRule(Operation.CLUSTER_ACTION, elements=_FETCHED)
_CONSUMER = AccessRule(element=_topic(Operation.READ), elements=_FETCHED)
_CONTROLLERS_DESCRIBED = AccessRule(Operation.ALTER)
_UNLISTED = AccessRule(Operation.ALTER)
_FREE = AccessRule()

RULES: Mapping[str, AccessRule] = {
    **dict.fromkeys(("ApiVersions", "SaslHandshake", "SaslAuthenticate"), _FREE),
    # Which groups there are, and which brokers, is filtered, not refused.
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
        ),
        AccessRule(Operation.ALTER),
    ),
    "ElectLeaders": AccessRule(
        Operation.ALTER,
        elements={"topic_partitions.partitions": "replica_election_results.partition_result"},
    ),
    "AlterPartitionReassignments": AccessRule(
        Operation.ALTER, elements={"topics.partitions": "responses.partitions"}
    ),
    "CreateAcls": AccessRule(Operation.ALTER, elements={"creations": "results"}),
    "DeleteAcls": AccessRule(Operation.ALTER, elements={"filters": "filter_results"}),
    "CreateDelegationToken": AccessRule(element=_token_owner, is_element=True),
    **dict.fromkeys(("RenewDelegationToken", "ExpireDelegationToken"), _FREE),
    "AlterUserScramCredentials": AccessRule(
        Operation.ALTER, elements={"deletions": "results", "upsertions": "results"}
    ),
    "AlterClientQuotas": AccessRule(
        Operation.ALTER_CONFIGS, elements={"entries.entity": "entries.entity"}
    ),
    **dict.fromkeys(
        ("DescribeQuorum", "ListPartitionReassignments", "DescribeAcls", "DescribeLogDirs"),
        AccessRule(Operation.DESCRIBE),
    ),
    "ListConfigResources": AccessRule(Operation.DESCRIBE_CONFIGS),
    "CreateTopics": AccessRule(Operation.CREATE, _topic(Operation.CREATE), {"topics": "topics"}),
    "DeleteTopics": AccessRule(
        Operation.DELETE,
        _topic(Operation.DELETE),
        {"topics": "responses", "topic_names": "responses"},
    ),
    "CreatePartitions": AccessRule(element=_topic(Operation.ALTER), elements={"topics": "results"}),
    **dict.fromkeys(
        ("AlterConfigs", "IncrementalAlterConfigs"),
        AccessRule(element=_config(Operation.ALTER_CONFIGS), elements=_CONFIG_RESOURCES),
    ),
    "DescribeConfigs": AccessRule(
        element=_config(Operation.DESCRIBE_CONFIGS), elements={"resources": "results"}
    ),
    "Produce": AccessRule(
        element=_topic(Operation.WRITE),
        elements={"topic_data.partition_data": "responses.partition_responses"},
    ),
    "InitProducerId": AccessRule(element=_producer_id, is_element=True),
    "FindCoordinator": AccessRule(
        element=_coordinator, elements={"coordinator_keys": "coordinators"}, is_element=True
    ),
    "ListOffsets": AccessRule(element=_topic(Operation.DESCRIBE), elements=_PARTITIONS),
    "OffsetForLeaderEpoch": AccessRule(element=_topic(Operation.DESCRIBE), elements=_PARTITIONS),
    "Metadata": AccessRule(
        element=_topic(Operation.DESCRIBE), elements={"topics": "topics"}, rest_from=1
    ),
    "DescribeTopicPartitions": AccessRule(
        element=_topic(Operation.DESCRIBE), elements={"topics": "topics"}
    ),
}


def rule_of(message: Message, *, is_controller_only: bool) -> AccessRule:
    """Return what a request asks on a listener; `is_controller_only` if it serves no clients."""
    name = messages.API_NAMES[message.API_KEY]
    if isinstance(message, FetchRequest):
        is_replica = is_controller_only or fetching_replica(message) >= 0
        return _FETCHING_REPLICA if is_replica else _CONSUMER
    if name == "DescribeCluster":
        endpoint_type = getattr(message, "endpoint_type", ENDPOINT_CONTROLLER)
        is_for_controllers = is_controller_only or endpoint_type == ENDPOINT_CONTROLLER
        return _CONTROLLERS_DESCRIBED if is_for_controllers else _FREE
    return RULES.get(name, _UNLISTED)


def elements_of(message: Message) -> Mapping[str, str]:
    """Return where the response to a request has the elements of the request, by path."""
    return rule_of(message, is_controller_only=True).elements


@dataclass(frozen=True, slots=True)
class Verdict:
    """The permitted part of a request, and the response to the refused part; each may be None."""

    permitted: Message | None
    refused: Message | None = None

    def joined_response(self, answer: Message) -> Message:
        """Add the refused elements to the answer to what was permitted."""
        if self.refused is None:
            return answer
        rule = RULES[messages.API_NAMES[answer.API_KEY]]
        for array in {path.partition(".")[0] for path in rule.elements.values()}:
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
            return _all_refused(message, version, rule, access)
    if rule.element is None:
        return Verdict(message)
    if not any(getattr(message, array) for array in _arrays(rule)):
        wanted = rule.element(message, message, topic_name) if rule.is_element else None
        if wanted is None or allows(wanted):
            return Verdict(message)
        return _all_refused(message, version, rule, wanted)
    verdict: Verdict = yield from _judged_by_element(message, version, rule, allows, topic_name)
    return verdict


def _judged_by_element(
    message: Message, version: int, rule: AccessRule, allows: Allows, topic_name: TopicName
) -> Pieces[Verdict]:
    assert rule.element is not None
    errors: dict[int, Error] = {}
    permitted, denied = copy(message), copy(message)
    for array in _arrays(rule):
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
    refused = refusal(denied, version, lambda one: errors[id(one)], rule.elements)
    is_wanted = any(getattr(permitted, array) for array in _arrays(rule)) or (
        rule.rest_from is not None and version >= rule.rest_from
    )
    return Verdict(permitted if is_wanted else None, refused)


def _arrays(rule: AccessRule) -> list[str]:
    return [path.partition(".")[0] for path in rule.elements]


def _all_refused(message: Message, version: int, rule: AccessRule, access: Access) -> Verdict:
    error = _error(access)
    return Verdict(None, refusal(message, version, lambda _: error, rule.elements, error))


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
