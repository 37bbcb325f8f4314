"""DescribeConfigs: this node's properties, and what the committed records say of other resources.

A broker resource with this node's id shows what the node was started with and what the committed
records set; with an empty name, the defaults of all brokers. A value that equals the default is
shown as one; passwords and keys are hidden. Topics, groups and subscriptions of client metrics are
those of the log, with the defaults of this controller. The quorum's topic has no separate
configuration: its values follow from the node's.

Source: KIP-133, KIP-226 (sources and synonyms); Kafka's `ConfigHelper`; C-CFG-16.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.described_configs import DESCRIBED_RESOURCES, describe_resource
from kraftwire.controller.topic_configs import Origin
from kraftwire.controller.topic_keys import Kind
from kraftwire.errors import ApiError
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
from kraftwire.node.handlers.node_configs import ConfigValue, kind_of, node_values, topic_values
from kraftwire.node.handlers.shared import body
from kraftwire.node.turns import in_turns
from kraftwire.pieces import Pieces
from kraftwire.protocol.config_resources import BROKER_RESOURCE, LOGGER_RESOURCE, TOPIC_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.secret_names import is_secret_config, is_secret_value

_WITH_TYPES = 3

_Key = tuple[int, str, tuple[str, ...] | None]


# About what the answer for a resource takes; many answers are made one at a time.
_RESOURCE_BYTES = 4 * 1024


async def handle(request: Request, context: Context) -> DescribeConfigsResponse:
    """Describe each resource, in turns."""
    message = body(request, DescribeConfigsRequest)
    wanted = {_key(resource) for resource in message.resources}
    await request.admit(len(wanted) * _RESOURCE_BYTES)
    return await in_turns(_described(request, context, message))


def _described(
    request: Request, context: Context, message: DescribeConfigsRequest
) -> Pieces[DescribeConfigsResponse]:
    # A resource that is named again has the same answer, which is made once.
    results: dict[_Key, DescribeConfigsResult] = {}
    response = DescribeConfigsResponse()
    for resource in message.resources:
        yield
        key = _key(resource)
        if key not in results:
            results[key] = _describe(request, context, resource)
        response.results.append(results[key])
    return response


def _key(resource: DescribeConfigsResource) -> _Key:
    keys = resource.configuration_keys
    return resource.resource_type, resource.resource_name, None if keys is None else tuple(keys)


def _describe(
    request: Request, context: Context, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    kind, name = resource.resource_type, resource.resource_name
    result = DescribeConfigsResult(resource_type=kind, resource_name=name, error_message="")
    values: list[ConfigValue] = []
    try:
        values = _values(context, kind, name)
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.detail
    # As in Kafka an empty list asks for all, like null.
    keys = frozenset(resource.configuration_keys or ())
    result.configs = [
        _shown(request, value) for value in values if not keys or value.name in keys
    ]
    return result


def _values(context: Context, kind: int, name: str) -> list[ConfigValue]:
    """Return the values of a resource. Raises: ApiError."""
    if kind == TOPIC_RESOURCE and name == context.config.topic.name:
        return topic_values(context.config)
    if kind in DESCRIBED_RESOURCES:
        cluster = Cluster(context.image, context.key.id, context.config.resource_settings)
        return [
            ConfigValue(
                one.name,
                one.value,
                one.kind,
                one.origin,
                tuple((each.name, each.value, each.origin) for each in one.synonyms),
                is_fixed=False,
            )
            for one in describe_resource(cluster, kind, name)
        ]
    if kind not in (BROKER_RESOURCE, LOGGER_RESOURCE):
        text = f"resource type {kind} has no configurations"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    if name != str(context.key.id) and (name or kind == LOGGER_RESOURCE):
        text = f"this is broker {context.key.id}, not {name:.300}: ask that broker"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    # Kraftwire has none of Kafka's loggers (C-CFG-2).
    return [] if kind == LOGGER_RESOURCE else _broker_values(context, name)


def _broker_values(context: Context, name: str) -> list[ConfigValue]:
    """Return a broker's values: its own, then the default of all brokers, then its properties."""
    values = {} if not name else {v.name: v for v in node_values(context.config)}
    layers = [("", Origin.ALL_BROKERS)]
    if name:
        layers.append((name, Origin.BROKER))
    for resource, source in layers:
        configs = context.image.configs.get((BROKER_RESOURCE, resource), {})
        for key, text in sorted(configs.items()):
            below = values.get(key)
            synonyms = ((key, text, source), *_synonyms(below))
            values[key] = ConfigValue(key, text, kind_of(key), source, synonyms, is_fixed=False)
    return list(values.values())


def _synonyms(value: ConfigValue | None) -> Sequence[tuple[str, str, Origin]]:
    """Return all values that a key could have, that which counts first."""
    if value is None or value.text is None:
        return ()
    own = ((value.name, value.text, value.source),)
    return own if value.synonyms is None else value.synonyms


def _shown(request: Request, value: ConfigValue) -> DescribeConfigsResourceResult:
    message = body(request, DescribeConfigsRequest)
    # As in Kafka, what nobody knows may be a secret.
    is_unknown = value.kind is Kind.UNKNOWN
    is_secret = is_unknown or is_secret_config(value.name) or is_secret_value(value.text)
    result = DescribeConfigsResourceResult(
        name=value.name,
        value=None if is_secret else value.text,
        read_only=value.is_fixed,
        config_source=value.source,
        is_sensitive=is_secret,
    )
    if message.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=name, value=None if is_secret else text, source=source)
            for name, text, source in _synonyms(value)
        ]
    if request.version >= _WITH_TYPES:
        result.config_type = value.kind
    return result
