"""ControllerRegistration: a controller registers its endpoints and features.

NOT_CONTROLLER unless this node is the active controller; an unchanged registration writes no
record.

Source: KIP-919; Kafka's `ClusterControlManager.registerController`.
"""

from __future__ import annotations

from kraftwire.errors import ApiError
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.controller_registration_response import ControllerRegistrationResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.wire.message import Message


async def handle(request: Request, context: Context) -> Message:
    """Answer once the registration is committed."""
    message = body(request, ControllerRegistrationRequest)
    try:
        return await context.controller.register_controller(message)
    except ApiError as error:
        return ControllerRegistrationResponse(error_code=error.code, error_message=error.detail)
