"""A node's configuration, read from its properties file and checked.

Checks the rules between keys (R-CONF-1 to R-CONF-5). There are two modes: Kafka mode, with
`process.roles`, and raft-README mode without it, where one listener serves peers and clients and
the node formats its log directory itself.

Source: Kafka's `KafkaConfig.validateValues` and `QuorumConfig`; README of Kafka's raft module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kraftwire.controller.group_configs import GROUP_SETTINGS, group_setting_errors
from kraftwire.controller.topic_keys import SETTINGS, setting_errors
from kraftwire.log.settings import SnapshotSettings
from kraftwire.node.config_keys import read_node_properties
from kraftwire.node.config_listeners import (
    BROKER,
    CONTROLLER,
    WILDCARDS,
    Listener,
    read_advertised,
    read_listeners,
    read_protocols,
    read_servers,
)
from kraftwire.node.config_security import NodeSecurity, read_security
from kraftwire.properties import Properties
from kraftwire.protocol.endpoint import Endpoint, parse_address
from kraftwire.raft.config import SNAPSHOT_BYTES_MAX, RaftTimers, TopicPartition
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet

__all__ = ["ConnectionLimits", "Listener", "NodeConfig", "load"]

_VOTERS = "controller.quorum.voters"
_BOOTSTRAP = "controller.quorum.bootstrap.servers"
_CAPTURE = "kraftwire.capture.file"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of one connection and of all of them together.

    Units: bytes and milliseconds. A negative `idle_ms` means no limit. `overrides` are maxima for
    single addresses.
    """

    frame_max_bytes: int = 100 * 1024 * 1024
    idle_ms: int = 600_000
    handshake_ms: int = 30_000
    write_ms: int = 30_000
    connections: int = (1 << 31) - 1
    connections_per_address: int = (1 << 31) - 1
    overrides: tuple[tuple[str, int], ...] = ()
    backlog: int = 50
    failed_login_delay_ms: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """A node's configuration.

    `is_raft_readme` is the mode without `process.roles`; `roles` are then both.
    `controller_listeners` are names in upper case, the first one being that of the voters'
    endpoints. `advertised` holds the endpoint of each advertised listener; a wildcard host is
    already replaced, and port 0 stands for the port that the system chooses. `voters` are static
    and may be empty. `resource_settings` are the defaults of new topics, and defaults and bounds of
    configurations, as in the file; `mutation_burst_seconds` is for how long quotas of mutations add
    up. `security` has no secret in its repr. `warnings` are for the log, one line each.
    """

    path: str
    node_id: int
    roles: frozenset[str]
    listeners: tuple[Listener, ...]
    advertised: tuple[Endpoint, ...]
    controller_listeners: tuple[str, ...]
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    is_raft_readme: bool = False
    inter_broker_listener: str | None = None
    voters: VoterSet = field(default_factory=VoterSet)
    bootstrap_servers: tuple[Endpoint, ...] = ()
    timers: RaftTimers = field(default_factory=RaftTimers)
    topic: TopicPartition = field(default_factory=TopicPartition)
    fetch_max_bytes: int = 1024 * 1024
    batch_max_bytes: int = 8 * 1024 * 1024
    segment_max_bytes: int = 1024 * 1024 * 1024
    segment_max_ms: int = 7 * 24 * 3600 * 1000
    fetch_snapshot_max_bytes: int = 1024 * 1024
    snapshot_max_bytes: int = SNAPSHOT_BYTES_MAX
    snapshots: SnapshotSettings = field(default_factory=SnapshotSettings)
    auto_join: bool = False
    idle_interval_ms: int = 500
    heartbeat_interval_ms: int = 2000
    session_timeout_ms: int = 9000
    request_timeout_ms: int = 30_000
    resource_settings: Mapping[str, str] = field(default_factory=dict)
    deletes_topics: bool = True
    mutation_burst_seconds: int = 11
    rebalance_interval_ms: int = 300_000
    unclean_interval_ms: int = 300_000
    rack: str | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    handover: str = "never"
    describe_leader_last_fetch: str = "now"
    prometheus: tuple[str, int] | None = None
    capture_file: str | None = None
    log_level: str = "info"
    security: NodeSecurity = field(default_factory=NodeSecurity)
    warnings: tuple[str, ...] = ()

    @property
    def is_broker(self) -> bool:
        """Whether clients are served."""
        return BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        """Whether this node may be a voter."""
        return CONTROLLER in self.roles

    @property
    def listener_name(self) -> str:
        """The listener name of the peers' controller endpoints."""
        return self.controller_listeners[0]

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the advertised endpoint of a listener."""
        return next((e for e in self.advertised if e.listener == listener), None)


def load(path: str, overrides: Iterable[str] = ()) -> NodeConfig:
    """Read and check a properties file.

    Overrides are `key=value` texts, which win over the file.
    Raises: UsageError naming key, file, line and what is allowed.
    """
    properties = read_node_properties(path, overrides)
    roles = _read_roles(properties)
    node_id = _read_id(properties)
    listeners, controllers = read_listeners(properties, roles)
    names = [listener.name for listener in listeners]
    security = _read_security(properties, names, controllers)
    voters, servers = _read_quorum(properties, controllers[0])
    between = _check_roles(properties, roles, names, controllers)
    _check_membership(properties, roles, node_id, voters)
    log_dirs = _read_directories(properties)
    return NodeConfig(
        path=path,
        node_id=node_id,
        roles=roles,
        is_raft_readme=not properties.has("process.roles"),
        listeners=listeners,
        advertised=read_advertised(properties, listeners, controllers[0], voters.get(node_id)),
        controller_listeners=controllers,
        inter_broker_listener=between,
        voters=voters,
        bootstrap_servers=servers,
        log_dirs=log_dirs,
        metadata_log_dir=properties.get("metadata.log.dir") or log_dirs[0],
        timers=_read_timers(properties),
        segment_max_bytes=_read_segment_bytes(properties),
        snapshots=SnapshotSettings(**properties.group("snapshots")),
        limits=_read_limits(properties),
        resource_settings=_read_resource_settings(properties),
        mutation_burst_seconds=_read_burst(properties),
        rebalance_interval_ms=_read_rebalance_interval(properties),
        prometheus=_read_prometheus(properties),
        capture_file=properties.get(_CAPTURE),
        security=security,
        **properties.group("node"),
        warnings=tuple(properties.warnings),
    )


def _read_id(properties: Properties) -> int:
    node_id = properties.number("node.id")
    if node_id is None:
        raise properties.missing("node.id", "every node needs a unique number")
    return node_id


def _read_roles(properties: Properties) -> frozenset[str]:
    if not properties.has("process.roles"):
        return frozenset((BROKER, CONTROLLER))
    roles = properties.items("process.roles")
    if not roles or not set(roles) <= {BROKER, CONTROLLER}:
        raise properties.refuse("process.roles", "broker, controller, or broker,controller")
    return frozenset(roles)


def _read_security(
    properties: Properties, names: list[str], controllers: tuple[str, ...]
) -> NodeSecurity:
    protocols = read_protocols(properties, names, controllers)
    security = read_security(properties, {name: protocols[name] for name in names})
    if properties.get(_CAPTURE) and not security.is_plain:
        # A capture of what is decrypted would hold passwords.
        problem = "no file where a listener has TLS or logins: it holds secrets"
        raise properties.refuse(_CAPTURE, problem)
    return security


def _read_quorum(properties: Properties, listener: str) -> tuple[VoterSet, tuple[Endpoint, ...]]:
    """Return the static voters and the bootstrap servers, either of which may be empty."""
    voters = _read_voters(properties, listener)
    servers = read_servers(properties, _BOOTSTRAP, listener)
    if not voters and not servers:  # R-CONF-1
        raise properties.missing(_VOTERS, f"it or {_BOOTSTRAP} has to name the quorum")
    return voters, servers


_VOTER = re.compile(r"(\d{1,10})@(.+)")


def _read_voters(properties: Properties, listener: str) -> VoterSet:
    voters: dict[int, Voter] = {}
    for text in properties.items(_VOTERS):
        match = _VOTER.fullmatch(text)
        place = parse_address(match[2]) if match else None
        if match is None or place is None or int(match[1]) >= 1 << 31:
            raise properties.refuse(_VOTERS, f"id@host:port,..., found {text!r}")
        if place[0] in WILDCARDS:
            raise properties.refuse(_VOTERS, f"an address that others can reach, found {place[0]}")
        voter_id = int(match[1])
        if voter_id in voters:
            raise properties.refuse(_VOTERS, f"each id once, found {voter_id} twice")
        voters[voter_id] = Voter(ReplicaKey(voter_id), (Endpoint(listener, *place),))
    return VoterSet.of(*voters.values())


def _check_roles(
    properties: Properties, roles: frozenset[str], names: list[str], controllers: tuple[str, ...]
) -> str | None:
    """Check R-CONF-2 and R-CONF-3 for listeners; returns the inter-broker listener, if any."""
    if not properties.has("process.roles"):
        return next((name for name in names if name not in controllers), names[0])
    if CONTROLLER not in roles:
        for name in controllers:
            if name in names:
                raise properties.refuse("listeners", f"no controller listener on a broker ({name})")
    else:
        for name in controllers:
            if name not in names:
                problem = f"an entry for {name} of controller.listener.names"
                raise properties.refuse("listeners", problem)
    between = (properties.get("inter.broker.listener.name") or "").upper()
    if BROKER not in roles:
        if set(names) - set(controllers):
            raise properties.refuse("listeners", "only controller listeners on a controller")
        if between in controllers:
            problem = "no controller listener on a controller"
            raise properties.refuse("inter.broker.listener.name", problem)
        return None
    if set(names) <= set(controllers):
        raise properties.refuse("listeners", "a listener for clients besides the controller's")
    if between and (between not in names or between in controllers):
        problem = "the name of a listener that is not the controller's"
        raise properties.refuse("inter.broker.listener.name", problem)
    return between or next(name for name in names if name not in controllers)


_JOIN = "controller.quorum.auto.join.enable"


def _check_membership(
    properties: Properties, roles: frozenset[str], node_id: int, voters: VoterSet
) -> None:
    """Check R-CONF-2 and R-CONF-3 for the static voters."""
    if not properties.has("process.roles"):
        return
    may_join = properties.flag(_JOIN)
    if CONTROLLER not in roles:
        if voters.get(node_id):
            problem = f"no entry for this node ({node_id}), which is a broker"
            raise properties.refuse(_VOTERS, problem)
        if may_join:
            raise properties.refuse(_JOIN, "false on a broker")
    elif voters and not voters.get(node_id):
        problem = f"an entry for this node ({node_id}), which is a controller"
        raise properties.refuse(_VOTERS, problem)


def _read_directories(properties: Properties) -> tuple[str, ...]:
    key = "log.dirs" if properties.has("log.dirs") else "log.dir"
    log_dirs = tuple(properties.items(key))
    if not log_dirs:
        raise properties.refuse(key, "at least one directory")
    return log_dirs


def _read_timers(properties: Properties) -> RaftTimers:
    timers = RaftTimers(**properties.group("timers"))
    longest = properties.number("quorum.retry.backoff.max.ms") or 0
    return replace(timers, retry_backoff_max_ms=max(timers.retry_backoff_ms, longest))


def _read_segment_bytes(properties: Properties) -> int:
    own = properties.integer("metadata.log.segment.bytes")
    internal = properties.number("internal.metadata.log.segment.bytes")
    return own if internal is None else internal


def _read_limits(properties: Properties) -> ConnectionLimits:
    overrides = _read_overrides(properties)
    return ConnectionLimits(overrides=overrides, **properties.group("limits"))


def _read_overrides(properties: Properties) -> tuple[tuple[str, int], ...]:
    key = "max.connections.per.ip.overrides"
    overrides = []
    for text in properties.items(key):
        address, colon, count = text.rpartition(":")
        if not colon or not address or re.fullmatch(r"[0-9]{1,10}", count) is None:
            raise properties.refuse(key, f"address:count,..., found {text!r}")
        overrides.append((address.strip("[]"), int(count)))
    return tuple(overrides)


def _read_resource_settings(properties: Properties) -> dict[str, str]:
    """Return the defaults of new topics and groups, which the active controller applies."""
    for key in ("num.partitions", "default.replication.factor"):
        properties.integer(key)
    for key in ("create.topic.policy.class.name", "alter.config.policy.class.name"):
        if properties.get(key):
            # A node that ignored it would allow what the policy forbids.
            raise properties.refuse(key, "none, as Java's classes do not run here")
    keys = SETTINGS | GROUP_SETTINGS
    given = {key: properties.text(key) or "" for key in properties.names() if key in keys}
    for key, wrong in setting_errors(given).items():
        raise properties.refuse(key, f"a value that topics can have ({wrong})")
    for key, wrong in group_setting_errors(given).items():
        raise properties.refuse(key, f"a bound for groups ({wrong})")
    return given


def _read_burst(properties: Properties) -> int:
    windows = properties.integer("controller.quota.window.num")
    return windows * properties.integer("controller.quota.window.size.seconds")


def _read_rebalance_interval(properties: Properties) -> int:
    """Return the time between elections of preferred leaders in ms, 0 for none."""
    seconds = properties.integer("leader.imbalance.check.interval.seconds")
    return seconds * 1000 if properties.flag("auto.leader.rebalance.enable") else 0


def _read_prometheus(properties: Properties) -> tuple[str, int] | None:
    text = properties.get("kraftwire.prometheus.listener")
    place = parse_address(text) if text else None
    if text and place is None:
        raise properties.refuse("kraftwire.prometheus.listener", "host:port")
    return place
