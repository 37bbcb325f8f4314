"""UnregisterBroker: a broker's registration is removed.

A listener for clients passes the request on to the leader; elsewhere it is NOT_CONTROLLER unless
this node is the active controller.

Source: KIP-631.
"""

from __future__ import annotations

from kraftwire.controller.brokers import unregister_broker
from kraftwire.errors import ApiError
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, is_active, must_forward
from kraftwire.wire.message import Message


async def handle(request: Request, context: Context) -> Message:
    """Answer once the removal is committed."""
    message = body(request, UnregisterBrokerRequest)
    try:
        if must_forward(request) and not is_active(context):
            return await context.forward(message, request.version)
        return await context.controller.submit(
            lambda cluster, _: unregister_broker.in_pieces(cluster, message),
            ("broker", message.broker_id),
        )
    except ApiError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.detail)
