"""Functions that several handlers share: the quorum's topic, its leader, who may answer."""

from __future__ import annotations

from typing import TypeVar

from kraftwire.errors import check
from kraftwire.node.context import Context, Request
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.security.acls import OPERATIONS_UNKNOWN, Operation
from kraftwire.wire.message import Message

# A bit for each operation.
_DESCRIBING = 1 << Operation.DESCRIBE | 1 << Operation.DESCRIBE_CONFIGS
_TOPIC_OPERATIONS = 1 << Operation.READ | _DESCRIBING
_CLUSTER_OPERATIONS = 1 << Operation.CLUSTER_ACTION | _DESCRIBING

M = TypeVar("M", bound=Message)


def body(request: Request, cls: type[M]) -> M:
    """Return the request's message as the type that the API key stands for."""
    message = request.message
    check(isinstance(message, cls), f"{cls.NAME} expected, not {message.NAME}")
    return message  # type: ignore[return-value]


def is_active(context: Context) -> bool:
    """Whether this node is the active controller."""
    return context.controller.is_active


def is_quorum_topic(context: Context, name: str | None, topic_id: bytes = bytes(16)) -> bool:
    """Return whether a topic in a request is the quorum's, by name, or by id if it has no name."""
    topic = context.config.topic
    return name == topic.name if name else topic_id == topic.topic_id


def leader_of_topic(request: Request, context: Context) -> Endpoint | None:
    """Return where clients reach the topic's leader: its broker's listener of the same name."""
    broker = context.image.brokers.get(context.raft.leader_id)
    if broker is None or broker.is_fenced:
        return None
    return broker.endpoint(request.listener)


def topic_operations(is_requested: bool) -> int:
    """Return the operations allowed on the quorum's topic, as a bit set."""
    return _TOPIC_OPERATIONS if is_requested else OPERATIONS_UNKNOWN


def cluster_operations(is_requested: bool) -> int:
    """Return the operations allowed on the cluster, as a bit set."""
    return _CLUSTER_OPERATIONS if is_requested else OPERATIONS_UNKNOWN


def broker_as_controller(request: Request, context: Context) -> int:
    """Return the broker that clients use as the controller: the leader if it is a broker.

    Returns -1 if there is no broker with this listener. Source: Kafka returns any broker, because a
    broker forwards such requests.
    """
    if leader_of_topic(request, context) is not None:
        return context.raft.leader_id
    brokers = [b.id for b in context.image.alive_brokers if b.endpoint(request.listener)]
    own = context.key.id
    return own if own in brokers else min(brokers, default=-1)


def replicas_of_topic(context: Context) -> tuple[list[int], list[int]]:
    """Return the voters as the topic's replicas, and those that have no broker to read from."""
    replicas = [voter.key.id for voter in context.raft.voters]
    alive = {broker.id for broker in context.image.alive_brokers}
    return replicas, [replica for replica in replicas if replica not in alive]


def epoch_error(context: Context, current_leader_epoch: int) -> ErrorCode:
    """Check the leader epoch of a client's request; returns the error, if any.

    -1 skips the comparison; any node but the leader is an error. Source: KIP-320.
    """
    raft = context.raft
    if 0 <= current_leader_epoch < raft.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if current_leader_epoch > raft.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    is_leader = raft.leader_id == context.key.id and raft.role == "leader"
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def must_forward(request: Request) -> bool:
    """Return whether a request is to be forwarded to the leader.

    Clients of a broker expect that; peers address the node that they mean. On a listener for both,
    a kraftwire node or client counts as a peer, so that no request is forwarded in circles.
    """
    if not request.from_client_listener:
        return False
    return not (request.from_controller_listener and request.software == SOFTWARE_NAME)
