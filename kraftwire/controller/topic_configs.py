"""The configurations of topics: their checks, and the effective values with their origins.

Rule: C-CFG-11. Source: Kafka's `LogConfig` and `ServerTopicConfigSynonyms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.topic_keys import (
    HIDDEN_KEYS,
    TOPIC_KEYS,
    TopicKey,
    check_length,
    check_value,
    invalid_config,
    setting_names,
    whole_number,
)


class Origin(IntEnum):
    """Where an effective value is from. Source: `DescribeConfigsResponse.ConfigSource`."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    PROPERTIES_FILE = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """The value of a key that a topic has, and its origin."""

    name: str
    value: str
    origin: Origin


def check_topic_configs(cluster: Cluster, values: Mapping[str, str]) -> None:
    """Check the whole configuration of a topic. Raises: ApiError INVALID_CONFIG naming the key."""
    for name, value in values.items():
        key = TOPIC_KEYS.get(name) or HIDDEN_KEYS.get(name)
        if key is None:
            raise invalid_config(f"{name} is not a configuration key of topics")
        check_length(name, value)
        check_value(name, value, key.validator)
    _check_together(cluster, values)


def _check_together(cluster: Cluster, values: Mapping[str, str]) -> None:
    """Check keys that depend on each other; those not given have the controller's values."""

    def number(name: str) -> int:
        own = whole_number(values.get(name))
        return own if own is not None else _inherited_number(cluster, TOPIC_KEYS[name])

    low, high = number("min.compaction.lag.ms"), number("max.compaction.lag.ms")
    if low > high:
        raise invalid_config(f"min.compaction.lag.ms is {low}, above max.compaction.lag.ms, {high}")
    if values.get("remote.storage.enable", "").strip().lower() == "true":
        text = "remote.storage.enable: this controller's cluster has no remote storage"
        raise invalid_config(text)


def inherited_values(cluster: Cluster) -> dict[str, EffectiveValue]:
    """Return the values of all keys for a topic that has none of its own, by name (C-CFG-11)."""
    return {name: _inherited(cluster, key) for name, key in sorted(TOPIC_KEYS.items())}


def effective_values(
    inherited: Mapping[str, EffectiveValue], values: Mapping[str, str]
) -> list[EffectiveValue]:
    """Return the values of all keys for a topic with some of its own, by name; the hidden key only
    if the topic has it."""
    own = {name: EffectiveValue(name, value, Origin.TOPIC) for name, value in values.items()}
    return [one for _, one in sorted({**inherited, **own}.items())]


def _inherited_number(cluster: Cluster, key: TopicKey) -> int:
    """Return the number that a topic inherits, past values of brokers that a controller cannot read
    (C-CFG-17)."""
    found = (each.value for each in _given(cluster, key))
    return int(next((value for value in found if not key.validator(value)), key.default))


def _inherited(cluster: Cluster, key: TopicKey) -> EffectiveValue:
    found = next(_given(cluster, key), None)
    if found is None:
        return EffectiveValue(key.name, key.default, Origin.DEFAULT)
    return EffectiveValue(key.name, found.value, found.origin)


def _given(cluster: Cluster, key: TopicKey) -> Iterator[EffectiveValue]:
    """Yield what is set for all topics, by the keys of brokers; the first one counts."""
    origins = (Origin.BROKER, Origin.ALL_BROKERS, Origin.PROPERTIES_FILE)
    for origin, values in zip(origins, cluster.inherited_settings(), strict=True):
        for name, factor in setting_names(key):
            value = values.get(name)
            if value is not None:
                yield EffectiveValue(name, _in_ms(value, factor), origin)


def settings_of(cluster: Cluster, key: TopicKey) -> Iterator[EffectiveValue]:
    """Yield what counts for topics without a value of their own, by the keys of brokers: what is
    set, then the default."""
    yield from _given(cluster, key)
    if key.synonyms:
        yield EffectiveValue(key.synonyms[0], key.default, Origin.DEFAULT)


def _in_ms(value: str, factor: int) -> str:
    """Return a time in milliseconds; as in Kafka, one in another unit that cannot be read is 0."""
    if factor == 1:
        return value
    number = whole_number(value) or 0
    return str(number * factor if -(2**31) <= number < 2**31 else 0)
