"""InitProducerId, versions 0 to 5: refused, as nothing can be produced.

Source: Kafka's `KafkaApis.handleInitProducerIdRequest` for a client without permission.
"""

from __future__ import annotations

from kraftwire.messages.init_producer_id_request import InitProducerIdRequest
from kraftwire.messages.init_producer_id_response import InitProducerIdResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, _: Context) -> InitProducerIdResponse:
    """Refuse, with the code for transactions if the request has a transactional id."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if body(request, InitProducerIdRequest).transactional_id is not None:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
