"""DescribeAcls, versions 1 to 3: SECURITY_DISABLED, as from a Kafka without an authorizer."""

from __future__ import annotations

from kraftwire.messages.describe_acls_response import DescribeAclsResponse
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import NO_AUTHORIZER_TEXT
from kraftwire.protocol.error_codes import ErrorCode

__all__ = ["handle"]


async def handle(_: Request, __: Context) -> DescribeAclsResponse:
    """Refuse."""
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_TEXT
    )
