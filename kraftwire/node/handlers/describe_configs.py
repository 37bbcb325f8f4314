"""DescribeConfigs: this node's properties, and those of the quorum's topic.

A broker resource with this node's id shows what the node was started with and what the committed
records set; with an empty name, the defaults of all brokers. A value that equals the default is
shown as one; passwords and keys are hidden. The quorum's topic has no separate configuration: its
values follow from the node's.

Source: KIP-133, KIP-226 (sources and synonyms); Kafka's `ConfigHelper`.
"""

from __future__ import annotations

from kraftwire.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftwire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraftwire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.node_configs import (
    DYNAMIC_BROKER,
    DYNAMIC_DEFAULT_BROKER,
    STRING,
    ConfigValue,
    node_values,
    topic_values,
)
from kraftwire.node.handlers.shared import body
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.secret_names import is_secret_config, is_secret_value

_WITH_TYPES = 3


async def handle(request: Request, context: Context) -> DescribeConfigsResponse:
    """Describe each resource."""
    message = body(request, DescribeConfigsRequest)
    return DescribeConfigsResponse(
        results=[_describe(request, context, resource) for resource in message.resources]
    )


def _describe(
    request: Request, context: Context, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=""
    )
    values: list[ConfigValue] = []
    if resource.resource_type == TOPIC_RESOURCE:
        if resource.resource_name == context.config.topic.name:
            values = topic_values(context.config)
        else:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif resource.resource_type != BROKER_RESOURCE:
        result.error_code = ErrorCode.INVALID_REQUEST
        result.error_message = f"resource type {resource.resource_type} has no configurations here"
    elif resource.resource_name in ("", str(context.key.id)):
        values = _broker_values(context, resource.resource_name)
    else:
        result.error_code = ErrorCode.INVALID_REQUEST
        result.error_message = (
            f"this is broker {context.key.id}, not {resource.resource_name}: ask that broker"
        )
    keys = resource.configuration_keys  # as in Kafka an empty list asks for all, like null
    result.configs = [
        _shown(request, value) for value in values if not keys or value.name in keys
    ]
    return result


def _broker_values(context: Context, name: str) -> list[ConfigValue]:
    """Return a broker's values: its own, then the default of all brokers, then its properties."""
    values = {} if not name else {v.name: v for v in node_values(context.config)}
    layers = [("", DYNAMIC_DEFAULT_BROKER)]
    if name:
        layers.append((name, DYNAMIC_BROKER))
    for resource, source in layers:
        configs = context.image.configs.get((BROKER_RESOURCE, resource), {})
        for key, text in sorted(configs.items()):
            values[key] = ConfigValue(key, text, STRING, source)
    return list(values.values())


def _shown(request: Request, value: ConfigValue) -> DescribeConfigsResourceResult:
    message = body(request, DescribeConfigsRequest)
    is_secret = is_secret_config(value.name) or is_secret_value(value.text)
    text = None if is_secret else value.text
    result = DescribeConfigsResourceResult(
        name=value.name,
        value=text,
        read_only=True,
        config_source=value.source,
        is_sensitive=is_secret,
    )
    if message.include_synonyms and value.text is not None:
        result.synonyms = [
            DescribeConfigsSynonym(name=value.name, value=text, source=value.source)
        ]
    if request.version >= _WITH_TYPES:
        result.config_type = value.kind
    return result
