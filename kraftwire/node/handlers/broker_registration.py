"""BrokerRegistration: a broker gets its epoch, and is fenced at first.

NOT_CONTROLLER unless this node is the active controller. The epoch is the offset of the record.

Source: KIP-631; Kafka's `ClusterControlManager.registerBroker`.
"""

from __future__ import annotations

from kraftwire.errors import ApiError
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.wire.message import Message


async def handle(request: Request, context: Context) -> Message:
    """Answer once the registration is committed."""
    message = body(request, BrokerRegistrationRequest)
    try:
        return await context.controller.register_broker(message, request.version)
    except ApiError as error:
        return BrokerRegistrationResponse(error_code=error.code, broker_epoch=-1)
