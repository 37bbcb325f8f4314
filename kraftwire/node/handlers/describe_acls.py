"""DescribeAcls: the ACLs of the committed records that pass a filter, by resource.

SECURITY_DISABLED without an authorizer, as in Kafka: then ACLs have no effect. A filter of an
unknown kind is INVALID_REQUEST.

Source: KIP-140, KIP-290; Kafka's `AclApis` and `AclCache.acls`.
"""

from __future__ import annotations

from kraftwire.messages.describe_acls_request import DescribeAclsRequest
from kraftwire.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.node.turns import in_turns
from kraftwire.pieces import Pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.acl_filter import UNKNOWN_FILTER, AclFilter
from kraftwire.security.acls import Acl

# So many ACLs are one piece of work.
_PIECE_ACLS = 1000

NO_AUTHORIZER = "no authorizer is configured here"


async def handle(request: Request, context: Context) -> DescribeAclsResponse:
    """List the ACLs that pass the filter."""
    message = body(request, DescribeAclsRequest)
    if context.config.security.authorizer is None:
        code = ErrorCode.SECURITY_DISABLED
        return DescribeAclsResponse(error_code=code, error_message=NO_AUTHORIZER)
    wanted = AclFilter.of(message)
    if not wanted.is_known:
        code = ErrorCode.INVALID_REQUEST
        return DescribeAclsResponse(error_code=code, error_message=UNKNOWN_FILTER)
    return await in_turns(_described(wanted, list(context.image.acls.items())))


def _described(
    wanted: AclFilter, acls: list[tuple[bytes, Acl]]
) -> Pieces[DescribeAclsResponse]:
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    found: list[tuple[bytes, Acl]] = []
    for at in range(0, len(acls), _PIECE_ACLS):
        found += wanted.passing(acls[at : at + _PIECE_ACLS])
        yield
    for number, (_, acl) in enumerate(found):
        if number % _PIECE_ACLS == 0:
            yield
        key = acl.resource_type, acl.resource_name, acl.pattern
        resource = resources.get(key)
        if resource is None:
            resource = resources[key] = DescribeAclsResource(
                resource_type=key[0], resource_name=key[1], pattern_type=key[2]
            )
        resource.acls.append(
            AclDescription(
                principal=str(acl.principal),
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))
