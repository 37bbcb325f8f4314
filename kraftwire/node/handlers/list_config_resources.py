"""ListConfigResources: the names of what DescribeConfigs can be asked for, by type.

Topics and brokers are those that there are, groups and subscriptions of client metrics those of the
log that have a configuration. Version 0 lists subscriptions only.

Source: KIP-714, KIP-1142; Kafka's `KafkaApis.handleListConfigResources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftwire.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftwire.messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body
from kraftwire.protocol.config_resources import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    TOPIC_RESOURCE,
)
from kraftwire.protocol.error_codes import ErrorCode

_WITH_TYPES = 1


async def handle(request: Request, context: Context) -> ListConfigResourcesResponse:
    """List names by type; UNSUPPORTED_VERSION for a type that there is not."""
    found = _names(context)
    wanted = [CLIENT_METRICS_RESOURCE]
    if request.version >= _WITH_TYPES:
        wanted = body(request, ListConfigResourcesRequest).resource_types or [*found]
    if not found.keys() >= set(wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(wanted)
            for name in found[kind]
        ]
    )


def _names(context: Context) -> Mapping[int, Iterable[str]]:
    """Return the names by type."""
    image = context.image
    brokers = [str(broker.id) for broker in image.alive_brokers]
    found: dict[int, Iterable[str]] = {
        TOPIC_RESOURCE: [context.config.topic.name, *image.topics.ids],
        BROKER_RESOURCE: brokers,
        LOGGER_RESOURCE: brokers,
    }
    return found | {
        kind: [name for each, name in image.configs if each == kind]
        for kind in (CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)
    }
