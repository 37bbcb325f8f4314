"""AllocateProducerIds, version 0: refused, as nothing can be produced.

NOT_CONTROLLER unless this node is the active controller, STALE_BROKER_EPOCH for a broker that is
not registered with that epoch.

Source: KIP-730.
"""

from __future__ import annotations

from kraftwire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftwire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, broker_error
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> AllocateProducerIdsResponse:
    """Refuse."""
    message = body(request, AllocateProducerIdsRequest)
    error = broker_error(context, message.broker_id, message.broker_epoch)
    return AllocateProducerIdsResponse(error_code=error or ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
