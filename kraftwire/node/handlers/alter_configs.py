"""AlterConfigs, versions 0 to 2: refused for every resource.

Source: KIP-133.
"""

from __future__ import annotations

from kraftwire.messages.alter_configs_request import AlterConfigsRequest
from kraftwire.messages.alter_configs_response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, config_refusal

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> AlterConfigsResponse:
    """Refuse each resource."""
    responses = []
    for resource in body(request, AlterConfigsRequest).resources:
        kind, name = resource.resource_type, resource.resource_name
        code, text = config_refusal(request, context, kind, name)
        responses.append(
            AlterConfigsResourceResponse(
                resource_type=kind, resource_name=name, error_code=code, error_message=text
            )
        )
    return AlterConfigsResponse(responses=responses)
