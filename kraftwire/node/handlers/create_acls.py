"""CreateAcls, versions 1 to 3: SECURITY_DISABLED, as from a Kafka without an authorizer."""

from __future__ import annotations

from kraftwire.messages.create_acls_request import CreateAclsRequest
from kraftwire.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import NO_AUTHORIZER_TEXT, body
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, _: Context) -> CreateAclsResponse:
    """Refuse each."""
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_TEXT
    )
    return CreateAclsResponse(results=[refused] * len(body(request, CreateAclsRequest).creations))
