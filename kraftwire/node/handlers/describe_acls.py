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
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.acl_filter import UNKNOWN_FILTER, AclFilter

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
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for _, acl in wanted.passing(context.image.acls.items()):
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
