"""DescribeCluster: the brokers, or with endpoint type 2 the controllers.

A listener for clients lists brokers, a controller's listener controllers; the other type is
MISMATCHED_ENDPOINT_TYPE (INVALID_REQUEST in version 0), an unknown one UNSUPPORTED_ENDPOINT_TYPE.
Controllers are the voters at their endpoints, and any other registered controllers. Below
metadata.version 3.7-IV0 no controller is registered, so such a list is UNSUPPORTED_VERSION.

Source: KIP-700, KIP-919, KIP-1073; R-SRV-5.
"""

from __future__ import annotations

from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, broker_as_controller, cluster_operations
from kraftwire.protocol.endpoint import ENDPOINT_BROKER, ENDPOINT_CONTROLLER
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.settings import PLAINTEXT

_NAMES = {ENDPOINT_BROKER: "brokers", ENDPOINT_CONTROLLER: "controllers"}

# The level 3.7-IV0, from which controllers are registered.
_WITH_CONTROLLERS = 15
_WITH_FENCED = 2


async def handle(request: Request, context: Context) -> DescribeClusterResponse:
    """List the nodes of one kind."""
    message = body(request, DescribeClusterRequest)
    wanted = message.endpoint_type
    served = {
        ENDPOINT_BROKER: request.from_client_listener,
        ENDPOINT_CONTROLLER: request.from_controller_listener,
    }
    if wanted not in served:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return _failed(code, f"unsupported endpoint type {wanted}")
    if not served[wanted]:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        if request.version == 0:
            code = ErrorCode.INVALID_REQUEST
        here = _NAMES[ENDPOINT_CONTROLLER if wanted == ENDPOINT_BROKER else ENDPOINT_BROKER]
        return _failed(code, f"this listener describes {here} only, not {_NAMES[wanted]}")
    level = context.image.metadata_version
    if wanted == ENDPOINT_CONTROLLER and level is not None and level < _WITH_CONTROLLERS:
        code = ErrorCode.UNSUPPORTED_VERSION
        return _failed(code, f"no controllers are registered at metadata.version {level}")
    describe = _brokers if wanted == ENDPOINT_BROKER else _controllers
    nodes = describe(request, context)
    response = DescribeClusterResponse(
        cluster_id=context.raft.cluster_id or "",
        controller_id=broker_as_controller(request, context),
        brokers=nodes,
        cluster_authorized_operations=cluster_operations(
            message.include_cluster_authorized_operations
        ),
    )
    if wanted == ENDPOINT_CONTROLLER:
        response.endpoint_type = ENDPOINT_CONTROLLER
        leader_id = context.raft.leader_id
        response.controller_id = leader_id if _lists(nodes, leader_id) else -1
    return response


def _failed(code: ErrorCode, text: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=text)


def _lists(nodes: list[DescribeClusterBroker], node_id: int) -> bool:
    return any(node.broker_id == node_id for node in nodes)


def _brokers(request: Request, context: Context) -> list[DescribeClusterBroker]:
    is_with_fenced = body(request, DescribeClusterRequest).include_fenced_brokers
    is_shown = request.version >= _WITH_FENCED
    brokers = context.image.brokers
    return [
        DescribeClusterBroker(
            broker_id=node_id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=is_shown and broker.is_fenced,
        )
        for node_id, broker in sorted(brokers.items())
        if (is_with_fenced or not broker.is_fenced)
        and (endpoint := broker.endpoint(request.listener))
    ]


def _controllers(request: Request, context: Context) -> list[DescribeClusterBroker]:
    # Voters in the log have an address for each listener, configured ones only for the first. While
    # a listener is added to one node after the other, some have no address for it yet: then that
    # of the first helps only a client that speaks its protocol.
    first = context.config.listener_name
    names = [request.listener]
    if _protocol(context, first) == _protocol(context, request.listener):
        names.append(first)
    endpoints = {
        voter.key.id: endpoint
        for voter in context.raft.voters
        if (endpoint := next(filter(None, map(voter.endpoint, names)), None))
    }
    for controller in context.image.controllers.values():
        for endpoint in controller.endpoints:
            if endpoint.listener == request.listener:
                endpoints[controller.id] = endpoint
    return [
        DescribeClusterBroker(broker_id=node_id, host=endpoint.host, port=endpoint.port)
        for node_id, endpoint in sorted(endpoints.items())
    ]


def _protocol(context: Context, listener: str) -> str:
    secured = context.config.security.listeners.get(listener)
    return PLAINTEXT if secured is None else secured.protocol
