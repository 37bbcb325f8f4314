"""The configurations of topics, groups and client metrics as DescribeConfigs shows them.

Each key has its value, where that comes from, and what would count without it. Rule: C-CFG-16.

Source: Kafka's `ConfigHelper`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kraftwire.controller.client_metrics import METRICS_KEYS
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.group_configs import (
    ASSIGNOR_KEY,
    INTERNAL_GROUP_KEYS,
    assignor_names,
    group_keys,
)
from kraftwire.controller.topic_configs import EffectiveValue, Origin, settings_of
from kraftwire.controller.topic_keys import TOPIC_KEYS, Kind, check_name, list_parts
from kraftwire.errors import ApiError
from kraftwire.protocol.config_resources import (
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kraftwire.protocol.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """A key with its value. `synonyms` are all values that it could have, the one that counts
    first, by the keys that they are set with."""

    name: str
    value: str
    kind: Kind
    origin: Origin
    synonyms: tuple[EffectiveValue, ...]


def describe_resource(cluster: Cluster, kind: int, name: str) -> list[DescribedConfig]:
    """Describe a topic, a group or a subscription of client metrics, by its type and name.

    Raises: ApiError for a resource of another type, or with an invalid name.
    """
    return [*_DESCRIBED[kind](cluster, name)]


def _describe_topic(cluster: Cluster, name: str) -> Iterator[DescribedConfig]:
    check_name(name)
    if name not in cluster.image.topics.ids:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    own = cluster.image.configs.get((TOPIC_RESOURCE, name), {})
    for key in TOPIC_KEYS.values():
        found = [*_own_value(own, key.name, Origin.TOPIC), *settings_of(cluster, key)]
        yield _describe_key(key.name, key.kind, key.default, found)


def _describe_group(cluster: Cluster, name: str) -> Iterator[DescribedConfig]:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the group is missing")
    own = cluster.image.configs.get((GROUP_RESOURCE, name), {})
    for key, kind, default, setting in group_keys():
        found = [
            *_own_value(own, key, Origin.GROUP),
            *_own_value(cluster.settings, setting, Origin.PROPERTIES_FILE),
        ]
        if not found and key in INTERNAL_GROUP_KEYS:
            continue
        found.append(EffectiveValue(setting, default, Origin.DEFAULT))
        shown = _describe_key(key, kind, default, found)
        if key == ASSIGNOR_KEY and shown.origin is Origin.PROPERTIES_FILE:
            # The file has a list.
            shown = replace(shown, value=assignor_names(cluster)[0])
        yield shown


def _describe_subscription(cluster: Cluster, name: str) -> Iterator[DescribedConfig]:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the subscription is missing")
    own = cluster.image.configs.get((CLIENT_METRICS_RESOURCE, name), {})
    for key, (kind, default) in METRICS_KEYS.items():
        yield _describe_key(key, kind, default, _own_value(own, key, Origin.CLIENT_METRICS))


_DESCRIBED: Mapping[int, Callable[[Cluster, str], Iterator[DescribedConfig]]] = {
    TOPIC_RESOURCE: _describe_topic,
    CLIENT_METRICS_RESOURCE: _describe_subscription,
    GROUP_RESOURCE: _describe_group,
}
DESCRIBED_RESOURCES = frozenset(_DESCRIBED)


def _own_value(values: Mapping[str, str], name: str, origin: Origin) -> list[EffectiveValue]:
    """Return the value of a key where it is set."""
    return [EffectiveValue(name, values[name], origin)] if name in values else []


def _describe_key(
    name: str, kind: Kind, default: str, found: Iterable[EffectiveValue]
) -> DescribedConfig:
    synonyms = tuple(
        EffectiveValue(one.name, _parsed_text(kind, one.value), one.origin) for one in found
    )
    first = synonyms[0] if synonyms else EffectiveValue(name, default, Origin.DEFAULT)
    return DescribedConfig(name, first.value, kind, first.origin, synonyms)


def _parsed_text(kind: Kind, value: str) -> str:
    """Return a value as Kafka writes it after it was read."""
    if kind is Kind.LIST:
        return ",".join(list_parts(value))
    return value.strip().lower() if kind is Kind.BOOLEAN else value.strip()
