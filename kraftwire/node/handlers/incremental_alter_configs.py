"""IncrementalAlterConfigs, versions 0 and 1: refused for every resource.

Source: KIP-339.
"""

from __future__ import annotations

from kraftwire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kraftwire.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.answers import body, config_refusal

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> IncrementalAlterConfigsResponse:
    """Refuse each resource."""
    responses = []
    for resource in body(request, IncrementalAlterConfigsRequest).resources:
        kind, name = resource.resource_type, resource.resource_name
        code, text = config_refusal(request, context, kind, name)
        responses.append(
            AlterConfigsResourceResponse(
                resource_type=kind, resource_name=name, error_code=code, error_message=text
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)
