"""APIs that a quorum offers but does not carry out: their errors, in one table.

Clients and brokers expect these APIs on a listener, so a node answers each with an error that ends
the attempt: Java's clients and librdkafka do not retry it. The rest of a response follows from its
schema: an element for each element of the request, with the same name or index.

An error of the whole node, such as NOT_CONTROLLER, stands once at the top of the response where its
version has a place for it, otherwise in every element.

Source: KIP-4, KIP-183, KIP-195, KIP-339, KIP-455, KIP-497, KIP-730, KIP-858; Kafka's `KafkaApis`
and `ControllerApis`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.messages.produce_request import ProduceRequest
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers.shared import (
    NOT_CONTROLLER_TEXT,
    is_active,
    is_quorum_topic,
    is_topic_name,
)
from kraftwire.node.image import TOPIC_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.facts import StructFacts
from kraftwire.wire.message import Message, Struct

_NO_TOPICS = "this quorum keeps only its own metadata log: topics cannot be created or changed"
_NO_AUTHORIZER = "no authorizer is configured here"
_NO_CONFIGS = "this quorum does not change configurations"
_NO_COORDINATORS = "this quorum has no group coordinators: assign partitions instead of subscribing"
_NO_SASL = "this listener does not speak SASL"


class Error(NamedTuple):
    """An error code, and a text for people where the response has a field for it."""

    code: ErrorCode
    text: str | None = None


SUCCESS = Error(ErrorCode.NONE)

ErrorOfNode = Callable[[Request, Context], Error]
ErrorOfElement = Callable[[Any, Request, Context], Error]


def _any_node(_: Request, __: Context) -> Error:
    return SUCCESS


def _active_controller(request: Request, context: Context) -> Error:
    """Peers address the active controller; clients may ask any node."""
    if request.from_client_listener or is_active(context):
        return SUCCESS
    return Error(ErrorCode.NOT_CONTROLLER, NOT_CONTROLLER_TEXT)


def _registered_broker(request: Request, context: Context) -> Error:
    """Requests of brokers carry the epoch that the active controller gave them."""
    if not is_active(context):
        return Error(ErrorCode.NOT_CONTROLLER)
    message: Any = request.message
    broker = context.image.brokers.get(message.broker_id)
    if broker is None or broker.epoch != message.broker_epoch:
        return Error(ErrorCode.STALE_BROKER_EPOCH)
    return SUCCESS


def _created_topic(topic: Any, _: Request, context: Context) -> Error:
    name = topic.name
    if name == context.config.topic.name:
        return Error(ErrorCode.INVALID_REQUEST, f"{name} is the quorum's own topic")
    if not is_topic_name(name):
        text = f"{name!r} is not a topic name: 1 to 249 ASCII letters, digits, . _ -"
        return Error(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    return Error(ErrorCode.POLICY_VIOLATION, _NO_TOPICS)


def _changed_topic(name: str, context: Context) -> Error:
    if name == context.config.topic.name:
        return Error(ErrorCode.POLICY_VIOLATION, _NO_TOPICS)
    return Error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _deleted_topic(topic: Any, _: Request, context: Context) -> Error:
    """Versions up to 5 list names, later ones a name or an id."""
    name, topic_id = (topic, bytes(16)) if isinstance(topic, str) else (topic.name, topic.topic_id)
    if is_quorum_topic(context, name, topic_id):
        return Error(ErrorCode.POLICY_VIOLATION, _NO_TOPICS)
    if name is None:
        return Error(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    return Error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _named_topic(topic: Any, _: Request, context: Context) -> Error:
    return _changed_topic(topic.name, context)


def _elected_topic(topic: Any, _: Request, context: Context) -> Error:
    return _changed_topic(topic.topic, context)


def _changed_config(resource: Any, _: Request, context: Context) -> Error:
    if resource.resource_type == TOPIC_RESOURCE:
        return _changed_topic(resource.resource_name, context)
    return Error(ErrorCode.POLICY_VIOLATION, _NO_CONFIGS)


def _coordinator(_: Any, request: Request, __: Context) -> Error:
    """Groups (0) and share groups (2) have no coordinator, transactions (1) are forbidden.

    On COORDINATOR_NOT_AVAILABLE Java's admin client would retry as fast as it can; NOT_COORDINATOR
    makes it give up. Consumers, which need a group name even if they read by assignment, retry at
    intervals and read on; librdkafka would report other codes to its user.
    """
    codes = {
        0: ErrorCode.NOT_COORDINATOR,
        1: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        2: ErrorCode.NOT_COORDINATOR,
    }
    message: Any = request.message
    return Error(codes.get(message.key_type, ErrorCode.INVALID_REQUEST), _NO_COORDINATORS)


def _producer_id(_: Any, request: Request, __: Context) -> Error:
    message: Any = request.message
    if message.transactional_id is None:
        return Error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return Error(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of an API.

    `error` is that of each element of the request's outermost array, of the request itself where
    its response has no array. `elements` maps a path of arrays in the request to one in the
    response. `node_error` is checked first.
    """

    error: Error | ErrorOfElement
    elements: Mapping[str, str] = field(default_factory=dict)
    node_error: ErrorOfNode = _any_node

    def error_of(self, element: Any, request: Request, context: Context) -> Error:
        """Return the error of an element of the request."""
        if isinstance(self.error, Error):
            return self.error
        return self.error(element, request, context)


_NO_ACLS = Error(ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)
_NO_TOPIC_ID = Error(ErrorCode.UNKNOWN_TOPIC_ID)

UNSUPPORTED: Mapping[str, Refusal] = {
    # Nobody but the quorum writes its log.
    "Produce": Refusal(
        Error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, _NO_TOPICS),
        {"topic_data.partition_data": "responses.partition_responses"},
    ),
    "InitProducerId": Refusal(_producer_id),
    "AllocateProducerIds": Refusal(
        Error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), node_error=_registered_broker
    ),
    # There are no groups and no transactions.
    "FindCoordinator": Refusal(_coordinator, {"coordinator_keys": "coordinators"}),
    "ListGroups": Refusal(SUCCESS),
    # The quorum's topic is the only one, and does not change.
    "CreateTopics": Refusal(_created_topic, {"topics": "topics"}, _active_controller),
    "DeleteTopics": Refusal(
        _deleted_topic, {"topics": "responses", "topic_names": "responses"}, _active_controller
    ),
    "CreatePartitions": Refusal(_named_topic, {"topics": "results"}, _active_controller),
    "ElectLeaders": Refusal(
        _elected_topic,
        {"topic_partitions.partitions": "replica_election_results.partition_result"},
        _active_controller,
    ),
    "AlterPartitionReassignments": Refusal(
        _named_topic, {"topics.partitions": "responses.partitions"}, _active_controller
    ),
    "ListPartitionReassignments": Refusal(SUCCESS, node_error=_active_controller),
    "AlterPartition": Refusal(
        _NO_TOPIC_ID, {"topics.partitions": "topics.partitions"}, _registered_broker
    ),
    "AssignReplicasToDirs": Refusal(
        _NO_TOPIC_ID,
        {"directories.topics.partitions": "directories.topics.partitions"},
        _registered_broker,
    ),
    # Every node reads its configuration from its own file.
    "AlterConfigs": Refusal(_changed_config, {"resources": "responses"}, _active_controller),
    "IncrementalAlterConfigs": Refusal(
        _changed_config, {"resources": "responses"}, _active_controller
    ),
    # As from a Kafka without an authorizer and without SASL on the listener.
    "DescribeAcls": Refusal(_NO_ACLS),
    "CreateAcls": Refusal(_NO_ACLS, {"creations": "results"}),
    "DeleteAcls": Refusal(_NO_ACLS, {"filters": "filter_results"}),
    "SaslHandshake": Refusal(Error(ErrorCode.ILLEGAL_SASL_STATE)),
    "SaslAuthenticate": Refusal(Error(ErrorCode.ILLEGAL_SASL_STATE, _NO_SASL)),
}

# Fields that a response repeats from its request, and those with another default in a refusal.
_REPEATED = frozenset(
    {
        "allow_replication_factor_change",
        "id",
        "index",
        "key",
        "name",
        "partition_id",
        "partition_index",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
    }
)
_WITHOUT_VALUE = {
    "base_offset": -1,
    "node_id": -1,
    "port": -1,
    "producer_epoch": -1,
    "producer_id": -1,
}


def handler_of(refusal: Refusal) -> Handler:
    """Return the handler of an API that is refused like this."""

    async def handle(request: Request, context: Context) -> Message | None:
        return refuse(refusal, request, context)

    return handle


def refuse(refusal: Refusal, request: Request, context: Context) -> Message | None:
    """Return the response with its errors; None for a producer that expects no response.

    Kafka closes the connection of such a producer to report the error.
    """
    message = request.message
    if isinstance(message, ProduceRequest) and message.acks == 0:
        return None
    response = messages.response_class(request.api_key)()
    root = response.facts().root
    carried = _carried(root, request.version)
    node_error = refusal.node_error(request, context)
    arrays = [(p, q) for p, q in refusal.elements.items() if q.partition(".")[0] in carried]
    if not arrays or (node_error.code and "error_code" in carried):
        error = node_error if node_error.code else refusal.error_of(message, request, context)
        _fill(response, carried, message, error)
        return response
    _fill(response, carried, message, SUCCESS)
    for requested, answered in arrays:
        outer, _, inner = requested.partition(".")
        first, _, rest = answered.partition(".")
        errors = [
            (one, node_error if node_error.code else refusal.error_of(one, request, context))
            for one in getattr(message, outer) or ()
        ]
        layout = _Elements(_struct(root, first), request.version, inner, rest)
        getattr(response, first).extend(layout.answer(one, error) for one, error in errors)
    return response


class _Elements:
    """Makes elements of one array of a response from those of the request."""

    def __init__(self, facts: StructFacts, version: int, requested: str, answered: str) -> None:
        """The paths lead from an element to the arrays in it; empty in the innermost array."""
        self._cls: type[Struct] = facts.cls
        self._carried = _carried(facts, version)
        self._requested, _, requested = requested.partition(".")
        self._answered, _, answered = answered.partition(".")
        self._inner: _Elements | None = None
        if self._answered:
            inner = _struct(facts, self._answered)
            self._inner = _Elements(inner, version, requested, answered)

    def answer(self, element: object, error: Error) -> Struct:
        """Return the response's element for one of the request."""
        result = self._cls()
        _fill(result, self._carried, element, error)
        if self._inner is not None:
            inner = [self._inner.answer(one, error) for one in getattr(element, self._requested)]
            setattr(result, self._answered, inner)
        return result


def _carried(facts: StructFacts, version: int) -> list[str]:
    return [one.attribute for one in facts.fields if version in one.versions]


def _struct(facts: StructFacts, attribute: str) -> StructFacts:
    (found,) = [one.struct for one in facts.fields if one.attribute == attribute]
    assert found is not None
    return found


def _fill(target: Struct, carried: list[str], source: object, error: Error) -> None:
    """Set what the response repeats from the request, and the error.

    An element that is no struct is itself the name or index.
    """
    for name in carried:
        if name == "error_code":
            setattr(target, name, error.code)
        elif name == "error_message":
            if error.code:
                setattr(target, name, error.text)
        elif name in _WITHOUT_VALUE:
            setattr(target, name, _WITHOUT_VALUE[name])
        elif name in _REPEATED:
            if not isinstance(source, Struct):
                setattr(target, name, source)
            elif hasattr(source, name):
                setattr(target, name, getattr(source, name))
