"""UnregisterController: the registration of a controller that is no voter any more is removed.

A listener for clients passes the request on to the leader; elsewhere it is NOT_CONTROLLER unless
this node is the active controller.

Source: KIP-1312.
"""

from __future__ import annotations

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.controllers import unregister_controller
from kraftwire.controller.step import StepResult
from kraftwire.errors import ApiError
from kraftwire.messages.unregister_controller_request import UnregisterControllerRequest
from kraftwire.messages.unregister_controller_response import UnregisterControllerResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, is_active, must_forward
from kraftwire.wire.message import Message


async def handle(request: Request, context: Context) -> Message:
    """Answer once the removal is committed."""
    message = body(request, UnregisterControllerRequest)

    def decide(cluster: Cluster, _: int) -> StepResult:
        voters = {voter.key.id for voter in context.raft.voters}
        return unregister_controller(cluster, message, voters)

    try:
        if must_forward(request) and not is_active(context):
            return await context.forward(message, request.version)
        return await context.controller.submit(decide, ("controller", message.controller_id))
    except ApiError as error:
        return UnregisterControllerResponse(error_code=error.code, error_message=error.detail)
