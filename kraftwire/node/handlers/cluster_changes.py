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
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.configs import alter_configs, alter_configs_incrementally
from kraftwire.controller.directories import assign_replicas
from kraftwire.controller.elections import elect_leaders
from kraftwire.controller.isr import alter_partition
from kraftwire.controller.mutation_quotas import Charge
from kraftwire.controller.producer_ids import allocate_producer_ids
from kraftwire.controller.quotas import alter_quotas
from kraftwire.controller.reassignment import alter_reassignments, list_reassignments
from kraftwire.controller.scram import alter_credentials
from kraftwire.controller.step import RECORDS_MAX, StepResult
from kraftwire.controller.tokens import create_token, expire_token, renew_token
from kraftwire.controller.topics import create_partitions, create_topics, delete_topics
from kraftwire.errors import ApiError
from kraftwire.log.uuids import random_uuid
from kraftwire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kraftwire.node.context import Context, Handler, Request
from kraftwire.node.handlers.unsupported import ErrorOfNode, authorizer_error, no_error
from kraftwire.pieces import Pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import SUCCESS, Error, refusal, requested_arrays
from kraftwire.security.principal import ANONYMOUS
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

# Placement is random, as in Kafka.
_random = Random()

# The first version of DeleteTopics whose senders know that error.
_WITH_DELETION_DISABLED = 3


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """How an API is decided on.

    `decision` gets the cluster, the message, and what `arguments` finds in the request around it.
    `has_timeout` is whether the request says how long its sender waits. `decides_nothing` is
    whether one that names nothing to change is decided all the same. `is_bounded` is whether it may
    write RECORDS_MAX records only; a broker that leads more partitions may report on all.
    `node_error` is checked first.
    """

    decision: Callable[..., StepResult | Pieces[StepResult]]
    arguments: Callable[[Cluster, Request], Mapping[str, object]] = lambda _, __: {}
    has_timeout: bool = False
    decides_nothing: bool = False
    is_bounded: bool = True
    node_error: ErrorOfNode = no_error

    def decide(self, cluster: Cluster, request: Request) -> StepResult | Pieces[StepResult]:
        """Decide on a request. Raises: ApiError."""
        return self.decision(cluster, request.message, **self.arguments(cluster, request))


def has_interface(name: str) -> bool:
    """Return whether this machine has a network interface of a name."""
    try:
        return socket.if_nametoindex(name) > 0
    except (OSError, ValueError):
        return False


def _reassignments(cluster: Cluster, message: ListPartitionReassignmentsRequest) -> StepResult:
    return StepResult(list_reassignments(cluster, message))


def _created_topics(cluster: Cluster, request: Request) -> Mapping[str, object]:
    return {
        "random": _random,
        "new_id": random_uuid,
        "charge": _charge(cluster, request, strict_since=6),
    }


def _deleted_topics(cluster: Cluster, request: Request) -> Mapping[str, object]:
    return {"charge": _charge(cluster, request, strict_since=5)}


def _created_partitions(cluster: Cluster, request: Request) -> Mapping[str, object]:
    return {"random": _random, "charge": _charge(cluster, request, strict_since=3)}


def _charge(cluster: Cluster, request: Request, strict_since: int) -> Charge:
    """Return the charge of partitions to the quota of the sender (C-QUO-1)."""
    return cluster.mutations.charge(
        cluster.image,
        (request.principal.name, request.client_id or ""),
        cluster.epoch_ms,
        is_strict=request.version >= strict_since,
    )


def _version(_: Cluster, request: Request) -> Mapping[str, object]:
    return {"version": request.version}


def _configs(_: Cluster, request: Request) -> Mapping[str, object]:
    """A broker has checked its own configuration in what it forwards (C-CFG-6)."""
    return {"is_forwarded": request.is_forwarded}


def _created_acls(_: Cluster, __: Request) -> Mapping[str, object]:
    return {"new_id": random_uuid, "has_interface": has_interface}


def _created_token(_: Cluster, request: Request) -> Mapping[str, object]:
    return {"requester": request.principal, "new_id": lambda: uuid_to_text(random_uuid())}


def _token(_: Cluster, request: Request) -> Mapping[str, object]:
    return {"principal": request.principal}


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


CHANGES: Mapping[str, ClusterChange] = {
    "CreateTopics": ClusterChange(create_topics.in_pieces, _created_topics, has_timeout=True),
    "DeleteTopics": ClusterChange(
        delete_topics.in_pieces, _deleted_topics, has_timeout=True, node_error=_deletion_error
    ),
    "CreatePartitions": ClusterChange(
        create_partitions.in_pieces, _created_partitions, has_timeout=True
    ),
    "ElectLeaders": ClusterChange(elect_leaders.in_pieces, has_timeout=True),
    "AlterPartitionReassignments": ClusterChange(alter_reassignments.in_pieces, has_timeout=True),
    "ListPartitionReassignments": ClusterChange(_reassignments),
    "AlterPartition": ClusterChange(alter_partition.in_pieces, _version, is_bounded=False),
    "AssignReplicasToDirs": ClusterChange(
        assign_replicas.in_pieces, decides_nothing=True, is_bounded=False
    ),
    "AllocateProducerIds": ClusterChange(allocate_producer_ids),
    "AlterConfigs": ClusterChange(alter_configs.in_pieces, _configs),
    "IncrementalAlterConfigs": ClusterChange(alter_configs_incrementally.in_pieces, _configs),
    "CreateAcls": ClusterChange(create_acls.in_pieces, _created_acls, node_error=authorizer_error),
    "DeleteAcls": ClusterChange(delete_acls.in_pieces, node_error=authorizer_error),
    "AlterUserScramCredentials": ClusterChange(alter_credentials.in_pieces),
    "AlterClientQuotas": ClusterChange(alter_quotas.in_pieces),
    "CreateDelegationToken": ClusterChange(create_token, _created_token, node_error=_token_error),
    "RenewDelegationToken": ClusterChange(renew_token, _token, node_error=_token_error),
    "ExpireDelegationToken": ClusterChange(expire_token, _token, node_error=_token_error),
}


def handler_of(name: str) -> Handler:
    """Return the handler of an API of the table."""
    change = CHANGES[name]

    async def handle(request: Request, context: Context) -> Message:
        of_node = change.node_error(request, context)
        if of_node.code:
            return _refused(request, of_node.code, of_node.text or "")
        try:
            return await _submitted(change, request, context)
        except ApiError as error:
            return _refused(request, error.code, error.detail)

    return handle


async def _submitted(change: ClusterChange, request: Request, context: Context) -> Message:
    message: Any = request.message
    if not change.decides_nothing and _names_nothing(message, request.version):
        return messages.response_class(message.API_KEY)()
    return await context.controller.submit(
        lambda cluster, _: change.decide(cluster, request),
        timeout_ms=message.timeout_ms if change.has_timeout else None,
        records_max=RECORDS_MAX if change.is_bounded else None,
    )


def _names_nothing(message: Message, version: int) -> bool:
    """Return whether a request has an empty array where it names what to change."""
    named = [getattr(message, array) for array in requested_arrays(message, version)]
    return bool(named) and all(each is not None and not each for each in named)


def _refused(request: Request, code: int, text: str) -> Message:
    whole = Error(ErrorCode(code), text or None)
    return refusal(request.message, request.version, lambda _: whole, whole)
