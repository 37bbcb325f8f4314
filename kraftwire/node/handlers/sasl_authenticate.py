"""SaslAuthenticate, versions 0 to 2: ILLEGAL_SASL_STATE, as on any listener without SASL.

Source: KIP-152; Kafka's `KafkaApis.handleSaslAuthenticateRequest`.
"""

from __future__ import annotations

from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.node.context import Context, Request
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(_: Request, __: Context) -> SaslAuthenticateResponse:
    """Refuse."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="this listener does not speak SASL",
    )
