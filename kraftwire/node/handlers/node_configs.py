"""The configurations of a node and of the quorum's topic, as clients see them.

Converts a `NodeConfig` back to property names and texts.
"""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.controller.image import CLUSTER_ID_CONFIG
from kraftwire.controller.topic_configs import Origin
from kraftwire.controller.topic_keys import Kind
from kraftwire.node.config import NodeConfig
from kraftwire.node.config_keys import KEYS
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.kafka_keys import type_of_key

_OWN_KINDS = {"bool": Kind.BOOLEAN, "text": Kind.STRING, "choice": Kind.STRING}


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One configuration.

    `synonyms` are name, value and source of all values that it could have; None if there is only
    this one. `is_fixed` is whether it cannot be altered by a request.
    """

    name: str
    text: str | None
    kind: Kind
    source: Origin
    synonyms: tuple[tuple[str, str, Origin], ...] | None = None
    is_fixed: bool = True


def node_values(config: NodeConfig) -> list[ConfigValue]:
    """Return the properties that a node was started with, by name."""
    timers = config.timers
    quorum = "controller.quorum."
    voters = ",".join(
        f"{voter.key.id}@{_address(endpoint)}"
        for voter in config.voters
        if (endpoint := voter.endpoint(config.listener_name))
    )
    bound = [Endpoint(item.name, item.host, item.port) for item in config.listeners]
    values: dict[str, object] = {
        "advertised.listeners": _listeners(config.advertised),
        "broker.heartbeat.interval.ms": config.heartbeat_interval_ms,
        "broker.rack": config.rack,
        "broker.session.timeout.ms": config.session_timeout_ms,
        "controller.listener.names": ",".join(config.controller_listeners),
        f"{quorum}append.linger.ms": timers.append_linger_ms,
        f"{quorum}bootstrap.servers": ",".join(map(_address, config.bootstrap_servers)),
        f"{quorum}election.backoff.max.ms": timers.election_backoff_max_ms,
        f"{quorum}election.timeout.ms": timers.election_timeout_ms,
        f"{quorum}fetch.max.bytes": config.fetch_max_bytes,
        f"{quorum}fetch.timeout.ms": timers.fetch_timeout_ms,
        f"{quorum}request.timeout.ms": timers.request_timeout_ms,
        f"{quorum}retry.backoff.ms": timers.retry_backoff_ms,
        f"{quorum}voters": voters,
        "inter.broker.listener.name": config.inter_broker_listener,
        "kraftwire.leader.handover": config.handover,
        "listeners": _listeners(bound),
        "log.dirs": ",".join(config.log_dirs),
        "metadata.log.dir": config.metadata_log_dir,
        "metadata.log.segment.bytes": config.segment_max_bytes,
        "metadata.log.segment.ms": config.segment_max_ms,
        "metadata.max.idle.interval.ms": config.idle_interval_ms,
        "node.id": config.node_id,
        "process.roles": ",".join(sorted(config.roles)),
        "request.timeout.ms": config.request_timeout_ms,
    }
    return [_value(name, value) for name, value in values.items()]


def topic_values(config: NodeConfig) -> list[ConfigValue]:
    """Return the configurations of the quorum's topic: never compacted, never compressed."""
    values: dict[str, tuple[object, Kind]] = {
        "cleanup.policy": ("delete", Kind.LIST),
        "compression.type": ("uncompressed", Kind.STRING),
        "max.message.bytes": (config.batch_max_bytes, Kind.INT),
        "retention.bytes": (-1, Kind.LONG),
        "retention.ms": (-1, Kind.LONG),
        "segment.bytes": (config.segment_max_bytes, Kind.INT),
        "segment.ms": (config.segment_max_ms, Kind.LONG),
    }
    return [
        ConfigValue(name, str(value), kind, Origin.PROPERTIES_FILE)
        for name, (value, kind) in values.items()
    ]


def _value(name: str, value: object) -> ConfigValue:
    key = KEYS.get(name)
    default = None if key is None else key.default
    source = Origin.DEFAULT if value in (default, "") else Origin.PROPERTIES_FILE
    return ConfigValue(name, None if value is None else str(value), kind_of(name), source)


def kind_of(name: str) -> Kind:
    """Return the kind of the value of a node's key, as Kafka has it where it knows the key."""
    kind = type_of_key(name)
    if kind is not None:
        return Kind[kind.upper()]
    if name == CLUSTER_ID_CONFIG:
        return Kind.STRING
    own = KEYS[name].kind if name in KEYS else "unknown"
    return _OWN_KINDS.get(own) or Kind[own.upper()]


def _address(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def _listeners(endpoints: tuple[Endpoint, ...] | list[Endpoint]) -> str:
    return ",".join(f"{endpoint.listener}://{_address(endpoint)}" for endpoint in endpoints)
