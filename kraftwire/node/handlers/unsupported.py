"""APIs that a node offers to clients but does not carry out: their errors, in one table.

Clients expect these APIs on a listener, so a node answers each with an error that ends
the attempt: Java's clients and librdkafka do not retry it. `kraftwire/protocol/refusals.py` makes
the rest of a response.

Source: KIP-4, KIP-183, KIP-195, KIP-339, KIP-455, KIP-497, KIP-730, KIP-858; Kafka's `KafkaApis`
and `ControllerApis`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kraftwire.messages.produce_request import ProduceRequest
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers.describe_acls import NO_AUTHORIZER
from kraftwire.node.handlers.shared import is_quorum_topic
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import SUCCESS, Error, refusal
from kraftwire.protocol.topic_names import TOPIC_NAME_RULE, is_topic_name
from kraftwire.wire.message import Message

_NO_TOPICS = "this quorum keeps only its own metadata log: topics cannot be created or changed"
_NO_CONFIGS = "this quorum does not change configurations"
_NO_COORDINATORS = "this quorum has no group coordinators: assign partitions instead of subscribing"
_NO_SASL = "this listener does not speak SASL"


_ACLS_ELSEWHERE = Error(
    ErrorCode.POLICY_VIOLATION, "ACLs are changed on a listener of the controllers"
)

ErrorOfNode = Callable[[Request, Context], Error]
ErrorOfElement = Callable[[Any, Request, Context], Error]


def no_error(_: Request, __: Context) -> Error:
    """Return no error: what is to be answered does not depend on the node."""
    return SUCCESS


def _created_topic(topic: Any, _: Request, context: Context) -> Error:
    name = topic.name
    if name == context.config.topic.name:
        return Error(ErrorCode.INVALID_REQUEST, f"{name} is the quorum's own topic")
    if not is_topic_name(name):
        return Error(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} is not {TOPIC_NAME_RULE}")
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


def authorizer_error(_: Request, context: Context) -> Error:
    """Return the error of a change of ACLs that would have no effect."""
    if context.config.security.authorizer is None:
        return Error(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return SUCCESS


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
    its response has no array. `node_error` is checked first.
    """

    error: Error | ErrorOfElement
    node_error: ErrorOfNode = no_error

    def error_of(self, element: Any, request: Request, context: Context) -> Error:
        """Return the error of an element of the request."""
        if isinstance(self.error, Error):
            return self.error
        return self.error(element, request, context)


UNSUPPORTED: Mapping[str, Refusal] = {
    # Nobody but the quorum writes its log.
    "Produce": Refusal(Error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, _NO_TOPICS)),
    "InitProducerId": Refusal(_producer_id),
    # There are no groups and no transactions.
    "FindCoordinator": Refusal(_coordinator),
    "ListGroups": Refusal(SUCCESS),
    # The quorum's topic is the only one, and does not change.
    "CreateTopics": Refusal(_created_topic),
    "DeleteTopics": Refusal(_deleted_topic),
    "CreatePartitions": Refusal(_named_topic),
    "ElectLeaders": Refusal(_elected_topic),
    "AlterPartitionReassignments": Refusal(_named_topic),
    "ListPartitionReassignments": Refusal(SUCCESS),
    # Every node reads its configuration from its own file.
    "AlterConfigs": Refusal(_changed_config),
    "IncrementalAlterConfigs": Refusal(_changed_config),
    # Without an authorizer and without SASL on the listener, as from Kafka.
    "CreateAcls": Refusal(_ACLS_ELSEWHERE, authorizer_error),
    "DeleteAcls": Refusal(_ACLS_ELSEWHERE, authorizer_error),
    "SaslHandshake": Refusal(Error(ErrorCode.ILLEGAL_SASL_STATE)),
    "SaslAuthenticate": Refusal(Error(ErrorCode.ILLEGAL_SASL_STATE, _NO_SASL)),
}


def handler_of(refusal: Refusal) -> Handler:
    """Return the handler of an API that is refused like this."""

    async def handle(request: Request, context: Context) -> Message | None:
        return refuse(refusal, request, context)

    return handle


def refuse(refused: Refusal, request: Request, context: Context) -> Message | None:
    """Return the response with its errors; None for a producer that expects no response.

    Kafka closes the connection of such a producer to report the error.
    """
    message = request.message
    if isinstance(message, ProduceRequest) and message.acks == 0:
        return None

    def error_of(element: Any) -> Error:
        return refused.error_of(element, request, context)

    whole = refused.node_error(request, context)
    return refusal(message, request.version, error_of, whole)
