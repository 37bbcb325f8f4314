"""DeleteAcls, versions 1 to 3: SECURITY_DISABLED, as from a Kafka without an authorizer."""

from __future__ import annotations

from kraftwire.messages.delete_acls_request import DeleteAclsRequest
from kraftwire.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import NO_AUTHORIZER_TEXT, body
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(request: Request, _: Context) -> DeleteAclsResponse:
    """Refuse each."""
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_TEXT
    )
    count = len(body(request, DeleteAclsRequest).filters)
    return DeleteAclsResponse(filter_results=[refused] * count)
