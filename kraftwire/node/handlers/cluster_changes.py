"""APIs with which brokers and administrators change the cluster: a decision for each, in one table.

The active controller decides (`kraftwire/controller`), and answers once the records are committed.
Elsewhere they are answered with NOT_CONTROLLER. A request that names nothing is answered at once.

Source: Kafka's `ControllerApis`; C-API-3, C-DL-1, C-ERR-5.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kraftwire import messages
from kraftwire.controller.acls import create_acls, delete_acls
from kraftwire.controller.batches import finished
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.configs import alter_configs, alter_configs_incrementally
from kraftwire.controller.directories import assign_replicas
from kraftwire.controller.elections import elect_leaders
from kraftwire.controller.isr import alter_partition
from kraftwire.controller.producer_ids import allocate_producer_ids
from kraftwire.controller.quotas import alter_quotas
from kraftwire.controller.reassignment import alter_reassignments, list_reassignments
from kraftwire.controller.scram import alter_credentials
from kraftwire.controller.step import RECORDS_MAX, StepResult
from kraftwire.controller.tokens import create_token, expire_token, renew_token
from kraftwire.controller.topics import (
    Charge,
    create_partitions,
    create_topics,
    delete_topics,
)
from kraftwire.errors import ApiError
from kraftwire.log.uuids import random_uuid
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers.unsupported import ErrorOfNode, any_node, authorizer_error
from kraftwire.pieces import Pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import SUCCESS, Error, refusal
from kraftwire.security.operations import elements_of
from kraftwire.security.principal import ANONYMOUS
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

# Placement is random, as in Kafka.
_random = Random()

# The first version of DeleteTopics whose senders know that error.
_WITH_DELETION_DISABLED = 3

_Decide = Callable[[Cluster, Any, Request], StepResult | Pieces[StepResult]]


@dataclass(frozen=True, slots=True)
class Change:
    """How an API is decided on.

    `decide` gets the cluster, the message, and the request that it came in. `elements` maps a path
    of arrays in the request to one in the response, for an error of the whole request; None if
    they are those of the rule of its rights. `has_timeout` is whether the request says how long its
    sender waits. `is_bounded` is whether it may write RECORDS_MAX records only; a broker that leads
    more partitions may report on all. `node_error` is checked first.
    """

    decide: _Decide
    elements: Mapping[str, str] | None = None
    has_timeout: bool = False
    is_bounded: bool = True
    node_error: ErrorOfNode = any_node


def has_interface(name: str) -> bool:
    """Return whether this machine has a network interface of a name."""
    try:
        return socket.if_nametoindex(name) > 0
    except (OSError, ValueError):
        return False


def _reassignments(cluster: Cluster, message: Any, _: Request) -> StepResult:
    return StepResult(list_reassignments(cluster, message))


def _for_anybody(decide: Callable[[Cluster, Any], StepResult | Pieces[StepResult]]) -> _Decide:
    """Let a decision not depend on the request around its message."""
    return lambda cluster, message, _: decide(cluster, message)


def _of_configs(decide: Callable[..., Pieces[StepResult]]) -> _Decide:
    """Let a decision know whether a broker has checked its own configuration (C-CFG-6)."""
    return lambda cluster, message, request: decide(
        cluster, message, is_forwarded=request.is_forwarded
    )


def _token_error(request: Request, context: Context) -> Error:
    """Refuse tokens to who has not logged in, or only by a token (C-TOK-1)."""
    security = context.config.security.listeners.get(request.listener)
    is_known = request.is_forwarded or (
        security is not None and (security.protocol != "SSL" or request.principal != ANONYMOUS)
    )
    if request.principal.is_token or not is_known:
        text = "tokens are for those who log in, and not by a token"
        return Error(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, text)
    return SUCCESS


def _deletion_error(request: Request, context: Context) -> Error:
    """Refuse to delete topics where the controller's file forbids it (C-DEL)."""
    if context.config.deletes_topics:
        return SUCCESS
    is_known = request.version >= _WITH_DELETION_DISABLED
    code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
    return Error(code, "delete.topic.enable is false on this controller")


def _charged(
    strict_since: int, decide: Callable[[Cluster, Any, Charge], Pieces[StepResult]]
) -> _Decide:
    """Let partitions count towards the quota of who sent the request (C-QUO-1)."""

    def decided(cluster: Cluster, message: Any, request: Request) -> Pieces[StepResult]:
        charge = cluster.mutations.charge(
            cluster.image,
            (request.principal.name, request.client_id or ""),
            cluster.epoch_ms,
            is_strict=request.version >= strict_since,
        )
        result = yield from decide(cluster, message, charge)
        response: Any = result.response
        response.throttle_time_ms = charge.throttle_ms
        result.applied = charge.commit
        return result

    return decided


CHANGES: Mapping[str, Change] = {
    "CreateTopics": Change(
        _charged(
            6,
            lambda cluster, message, charge: create_topics.in_pieces(
                cluster, message, random=_random, new_id=random_uuid, charge=charge
            ),
        ),
        has_timeout=True,
    ),
    "DeleteTopics": Change(
        _charged(
            5,
            lambda cluster, message, charge: delete_topics.in_pieces(
                cluster, message, charge=charge
            ),
        ),
        has_timeout=True,
        node_error=_deletion_error,
    ),
    "CreatePartitions": Change(
        _charged(
            3,
            lambda cluster, message, charge: create_partitions.in_pieces(
                cluster, message, random=_random, charge=charge
            ),
        ),
        has_timeout=True,
    ),
    "ElectLeaders": Change(_for_anybody(elect_leaders.in_pieces), has_timeout=True),
    "AlterPartitionReassignments": Change(
        _for_anybody(alter_reassignments.in_pieces), has_timeout=True
    ),
    "ListPartitionReassignments": Change(_reassignments),
    "AlterPartition": Change(
        lambda cluster, message, request: alter_partition.in_pieces(
            cluster, message, request.version
        ),
        {"topics.partitions": "topics.partitions"},
        is_bounded=False,
    ),
    "AssignReplicasToDirs": Change(_for_anybody(assign_replicas.in_pieces), is_bounded=False),
    "AllocateProducerIds": Change(_for_anybody(allocate_producer_ids)),
    "AlterConfigs": Change(_of_configs(alter_configs.in_pieces)),
    "IncrementalAlterConfigs": Change(_of_configs(alter_configs_incrementally.in_pieces)),
    "CreateAcls": Change(
        lambda cluster, message, _: create_acls.in_pieces(
            cluster, message, new_id=random_uuid, has_interface=has_interface
        ),
        node_error=authorizer_error,
    ),
    "DeleteAcls": Change(_for_anybody(delete_acls.in_pieces), node_error=authorizer_error),
    "AlterUserScramCredentials": Change(_for_anybody(alter_credentials.in_pieces)),
    "AlterClientQuotas": Change(_for_anybody(alter_quotas.in_pieces)),
    "CreateDelegationToken": Change(
        lambda cluster, message, request: create_token(
            cluster, message, request.principal, new_id=lambda: uuid_to_text(random_uuid())
        ),
        node_error=_token_error,
    ),
    "RenewDelegationToken": Change(
        lambda cluster, message, request: renew_token(cluster, message, request.principal),
        node_error=_token_error,
    ),
    "ExpireDelegationToken": Change(
        lambda cluster, message, request: expire_token(cluster, message, request.principal),
        node_error=_token_error,
    ),
}


def handler_of(name: str) -> Handler:
    """Return the handler of an API of the table."""
    change = CHANGES[name]

    async def handle(request: Request, context: Context) -> Message:
        of_node = change.node_error(request, context)
        if of_node.code:
            return _refused(change, request, of_node.code, of_node.text or "")
        try:
            return await _answer(change, request, context)
        except ApiError as error:
            return _refused(change, request, error.code, error.detail)

    return handle


async def _answer(change: Change, request: Request, context: Context) -> Message:
    message: Any = request.message
    if _names_nothing(change, message):
        return messages.response_class(message.API_KEY)()
    timeout_ms = message.timeout_ms if change.has_timeout else None

    def decide(cluster: Cluster, _: int) -> Pieces[StepResult]:
        result = yield from finished(change.decide(cluster, message, request))
        if change.is_bounded and len(result.records) > RECORDS_MAX:
            text = f"{len(result.records)} records in one request, more than {RECORDS_MAX}"
            raise ApiError(ErrorCode.POLICY_VIOLATION, text)
        return result

    return await context.controller.decide(decide, timeout_ms=timeout_ms)


def _names_nothing(change: Change, message: Message) -> bool:
    """Return whether a request has an empty array where it names what to change."""
    named = [getattr(message, path.partition(".")[0]) for path in _elements(change, message)]
    return bool(named) and all(each is not None and not each for each in named)


def _refused(change: Change, request: Request, code: int, text: str) -> Message:
    whole = Error(ErrorCode(code), text or None)
    elements = _elements(change, request.message)
    return refusal(request.message, request.version, lambda _: whole, elements, whole)


def _elements(change: Change, message: Message) -> Mapping[str, str]:
    return elements_of(message) if change.elements is None else change.elements
