"""BrokerHeartbeat: a broker is alive; it is unfenced, fenced or may shut down.

NOT_CONTROLLER unless this node is the active controller; STALE_BROKER_EPOCH for a broker that is
not registered with this epoch.

Source: KIP-631; Kafka's `BrokerHeartbeatManager`.
"""

from __future__ import annotations

from kraftwire.errors import ApiError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.wire.message import Message


async def handle(request: Request, context: Context) -> Message:
    """Answer once the resulting change, if any, is committed."""
    try:
        return await context.controller.heartbeat(body(request, BrokerHeartbeatRequest))
    except ApiError as error:
        return BrokerHeartbeatResponse(error_code=error.code)
