"""SaslHandshake, versions 0 and 1: ILLEGAL_SASL_STATE, as on any listener without SASL.

Source: KIP-43; Kafka's `KafkaApis.handleSaslHandshakeRequest`.
"""

from __future__ import annotations

from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.node.context import Context, Request
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(_: Request, __: Context) -> SaslHandshakeResponse:
    """Refuse."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
