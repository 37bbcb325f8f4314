"""ListConfigResources: the topic and the brokers that can be described.

Version 0 lists client metrics only: there are none.

Source: KIP-714, KIP-1142.
"""

from __future__ import annotations

from kraftwire.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftwire.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftwire.messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body

_WITH_TYPES = 1


async def handle(request: Request, context: Context) -> ListConfigResourcesResponse:
    """List names by type."""
    if request.version < _WITH_TYPES:
        return ListConfigResourcesResponse()
    types = body(request, ListConfigResourcesRequest).resource_types
    found = [(TOPIC_RESOURCE, context.config.topic.name)]
    found += [(BROKER_RESOURCE, str(broker.id)) for broker in context.image.alive_brokers]
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, name in found
            if not types or kind in types
        ]
    )
