"""A node's configuration, read from its properties file and checked.

Checks the rules between keys (R-CONF-1 to R-CONF-5). There are two modes: Kafka mode, with
`process.roles`, and raft-README mode without it, where one listener serves peers and clients and
the node formats its log directory itself.

Source: Kafka's `KafkaConfig.validateValues` and `QuorumConfig`; README of Kafka's raft module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kraftwire.controller.group_configs import GROUP_SETTINGS, group_setting_errors
from kraftwire.controller.topic_keys import SETTINGS, setting_errors
from kraftwire.log.settings import SnapshotSettings
from kraftwire.node import config_listeners
from kraftwire.node.config_listeners import WILDCARDS, Listener
from kraftwire.node.config_security import NodeSecurity, read_security
from kraftwire.node.settings import Settings, read_settings
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.config import SNAPSHOT_BYTES_MAX, RaftTimers, TopicPartition
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet

__all__ = ["ConnectionLimits", "Listener", "NodeConfig", "load"]

BROKER = "broker"
CONTROLLER = "controller"


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
    settings = read_settings(path, overrides)
    is_raft_readme = not settings.is_set("process.roles")
    roles = _read_roles(settings)
    node_id = settings.number("node.id")
    if node_id is None:
        raise settings.missing("node.id", "every node needs a unique number")
    bare = config_listeners.read_endpoints(settings, "listeners")
    if not bare:
        bare = _default_listeners(settings, roles, is_raft_readme)
    config_listeners.check_ports(settings, bare)
    controllers = _read_controller_listeners(settings, bare, is_raft_readme)
    names = [endpoint.listener for endpoint in bare]
    protocols = config_listeners.read_protocols(settings, names, list(controllers))
    security = read_security(settings, {name: protocols[name] for name in names})
    _check_capture(settings, security)
    voters = _read_voters(settings, controllers[0])
    servers = config_listeners.read_servers(
        settings, "controller.quorum.bootstrap.servers", controllers[0]
    )
    if not voters and not servers:  # R-CONF-1
        why = "it or controller.quorum.bootstrap.servers has to name the quorum"
        raise settings.missing("controller.quorum.voters", why)
    between = _check_roles(settings, roles, names, controllers)
    if not is_raft_readme:
        _check_membership(settings, roles, node_id, voters)
    read_only = config_listeners.read_only_listeners(settings, names, controllers[0])
    listeners = tuple(
        Listener(
            e.listener,
            e.host,
            e.port,
            *_served(e.listener, controllers, is_raft_readme),
            e.listener in read_only,
        )
        for e in bare
    )
    return NodeConfig(
        path=path,
        node_id=node_id,
        roles=roles,
        is_raft_readme=is_raft_readme,
        listeners=listeners,
        advertised=_read_advertised(settings, bare, controllers, voters.get(node_id)),
        controller_listeners=controllers,
        inter_broker_listener=between,
        voters=voters,
        bootstrap_servers=servers,
        **_read_directories(settings),  # type: ignore[arg-type]
        **_read_numbers(settings),  # type: ignore[arg-type]
        **_read_topics(settings),  # type: ignore[arg-type]
        **_read_own(settings),  # type: ignore[arg-type]
        security=security,
        warnings=tuple(settings.warnings),
    )


def _check_capture(settings: Settings, security: NodeSecurity) -> None:
    """A capture of what is decrypted would hold passwords."""
    key = "kraftwire.capture.file"
    if settings.text(key) and not security.is_plain:
        raise settings.refuse(key, "no file where a listener has TLS or logins: it holds secrets")


def _served(name: str, controllers: tuple[str, ...], is_raft_readme: bool) -> tuple[bool, bool]:
    """Return whether a listener serves controller APIs, and whether it serves broker APIs."""
    is_controller = is_raft_readme or name in controllers
    return is_controller, is_raft_readme or not is_controller


def _read_roles(settings: Settings) -> frozenset[str]:
    if not settings.is_set("process.roles"):
        return frozenset((BROKER, CONTROLLER))
    roles = settings.items("process.roles")
    if not roles or not set(roles) <= {BROKER, CONTROLLER}:
        raise settings.refuse("process.roles", "broker, controller, or broker,controller")
    return frozenset(roles)


def _default_listeners(
    settings: Settings, roles: frozenset[str], is_raft_readme: bool
) -> list[Endpoint]:
    if settings.is_set("listeners"):
        raise settings.refuse("listeners", "at least one NAME://host:port")
    if is_raft_readme or CONTROLLER in roles:
        raise settings.missing("listeners", "expected NAME://host:port,...")
    return [Endpoint("PLAINTEXT", "", 9092)]


def _read_controller_listeners(
    settings: Settings, listeners: list[Endpoint], is_raft_readme: bool
) -> tuple[str, ...]:
    key = "controller.listener.names"
    names = tuple(name.upper() for name in settings.items(key))
    if names:
        return names
    if not is_raft_readme:
        raise settings.refuse(key, "the names of the controller listeners")
    return (listeners[0].listener,)


_VOTER = re.compile(r"(\d{1,10})@(.+)")


def _read_voters(settings: Settings, listener: str) -> VoterSet:
    key = "controller.quorum.voters"
    voters: dict[int, Voter] = {}
    for text in settings.items(key):
        match = _VOTER.fullmatch(text)
        place = config_listeners.split(match[2]) if match else None
        if match is None or place is None or int(match[1]) >= 1 << 31:
            raise settings.refuse(key, f"id@host:port,..., found {text!r}")
        if place[0] in WILDCARDS:
            raise settings.refuse(key, f"an address that others can reach, found {place[0]}")
        voter_id = int(match[1])
        if voter_id in voters:
            raise settings.refuse(key, f"each id once, found {voter_id} twice")
        voters[voter_id] = Voter(ReplicaKey(voter_id), (Endpoint(listener, *place),))
    return VoterSet.of(*voters.values())


def _check_roles(
    settings: Settings, roles: frozenset[str], names: list[str], controllers: tuple[str, ...]
) -> str | None:
    """Check R-CONF-2 and R-CONF-3 for listeners; returns the inter-broker listener, if any."""
    if not settings.is_set("process.roles"):
        return next((name for name in names if name not in controllers), names[0])
    if CONTROLLER not in roles:
        for name in controllers:
            if name in names:
                raise settings.refuse("listeners", f"no controller listener on a broker ({name})")
    else:
        for name in controllers:
            if name not in names:
                problem = f"an entry for {name} of controller.listener.names"
                raise settings.refuse("listeners", problem)
    between = (settings.text("inter.broker.listener.name") or "").upper()
    if BROKER not in roles:
        if set(names) - set(controllers):
            raise settings.refuse("listeners", "only controller listeners on a controller")
        if between in controllers:
            problem = "no controller listener on a controller"
            raise settings.refuse("inter.broker.listener.name", problem)
        return None
    if set(names) <= set(controllers):
        raise settings.refuse("listeners", "a listener for clients besides the controller's")
    if between and (between not in names or between in controllers):
        problem = "the name of a listener that is not the controller's"
        raise settings.refuse("inter.broker.listener.name", problem)
    return between or next(name for name in names if name not in controllers)


_JOIN = "controller.quorum.auto.join.enable"


def _check_membership(
    settings: Settings, roles: frozenset[str], node_id: int, voters: VoterSet
) -> None:
    """Check R-CONF-2 and R-CONF-3 for the static voters."""
    key = "controller.quorum.voters"
    may_join = settings.flag(_JOIN)
    if CONTROLLER not in roles:
        if voters.get(node_id):
            raise settings.refuse(key, f"no entry for this node ({node_id}), which is a broker")
        if may_join:
            raise settings.refuse(_JOIN, "false on a broker")
    elif voters and not voters.get(node_id):
        raise settings.refuse(key, f"an entry for this node ({node_id}), which is a controller")


def _read_advertised(
    settings: Settings,
    listeners: list[Endpoint],
    controllers: tuple[str, ...],
    own: Voter | None,
) -> tuple[Endpoint, ...]:
    """Return an endpoint for every listener, with hosts that others can use (R-CONF-5)."""
    key = "advertised.listeners"
    given = {e.listener: e for e in config_listeners.read_endpoints(settings, key)}
    if not set(given) <= {e.listener for e in listeners}:
        raise settings.refuse(key, "only names that listeners has too")
    for endpoint in given.values():
        if endpoint.host in WILDCARDS[1:]:
            raise settings.refuse(key, f"an address that others can reach, found {endpoint.host}")
    advertised = []
    for endpoint in listeners:
        name = endpoint.listener
        chosen = given.get(name, endpoint)
        host = chosen.host
        if host in WILDCARDS:
            mine = own.endpoint(name) if own and name == controllers[0] else None
            host = mine.host if mine else config_listeners.host_name()
        advertised.append(Endpoint(name, host, chosen.port))
    return tuple(advertised)


def _read_directories(settings: Settings) -> dict[str, object]:
    key = "log.dirs" if settings.is_set("log.dirs") else "log.dir"
    log_dirs = tuple(settings.items(key))
    if not log_dirs:
        raise settings.refuse(key, "at least one directory")
    metadata = settings.text("metadata.log.dir") or log_dirs[0]
    return {"log_dirs": log_dirs, "metadata_log_dir": metadata}


def _read_numbers(settings: Settings) -> dict[str, object]:
    quorum = "controller.quorum."
    retry = settings.integer(f"{quorum}retry.backoff.ms")
    retry_max = settings.number("quorum.retry.backoff.max.ms")
    timers = RaftTimers(
        election_timeout_ms=settings.integer(f"{quorum}election.timeout.ms"),
        fetch_timeout_ms=settings.integer(f"{quorum}fetch.timeout.ms"),
        election_backoff_max_ms=settings.integer(f"{quorum}election.backoff.max.ms"),
        append_linger_ms=settings.integer(f"{quorum}append.linger.ms"),
        request_timeout_ms=settings.integer(f"{quorum}request.timeout.ms"),
        retry_backoff_ms=retry,
        retry_backoff_max_ms=max(retry, retry if retry_max is None else retry_max),
    )
    internal = settings.number("internal.metadata.log.segment.bytes")
    segment = settings.integer("metadata.log.segment.bytes")
    return {
        "timers": timers,
        "fetch_max_bytes": settings.integer(f"{quorum}fetch.max.bytes"),
        "fetch_snapshot_max_bytes": settings.integer(f"{quorum}fetch.snapshot.max.bytes"),
        "snapshot_max_bytes": settings.integer("kraftwire.snapshot.download.max.bytes"),
        "snapshots": _read_snapshots(settings),
        "auto_join": settings.flag(_JOIN),
        "batch_max_bytes": settings.integer("internal.metadata.max.batch.size.in.bytes"),
        "segment_max_bytes": segment if internal is None else internal,
        "segment_max_ms": settings.integer("metadata.log.segment.ms"),
        "idle_interval_ms": settings.integer("metadata.max.idle.interval.ms"),
        "heartbeat_interval_ms": settings.integer("broker.heartbeat.interval.ms"),
        "session_timeout_ms": settings.integer("broker.session.timeout.ms"),
        "request_timeout_ms": settings.integer("request.timeout.ms"),
        "limits": _read_limits(settings),
    }


def _read_snapshots(settings: Settings) -> SnapshotSettings:
    return SnapshotSettings(
        between_bytes=settings.integer("metadata.log.max.record.bytes.between.snapshots"),
        interval_ms=settings.integer("metadata.log.max.snapshot.interval.ms"),
        retention_bytes=settings.integer("metadata.max.retention.bytes"),
        retention_ms=settings.integer("metadata.max.retention.ms"),
        delete_delay_ms=settings.integer("internal.metadata.delete.delay.millis"),
    )


def _read_limits(settings: Settings) -> ConnectionLimits:
    own = "kraftwire.connection."
    return ConnectionLimits(
        frame_max_bytes=settings.integer("socket.request.max.bytes"),
        idle_ms=settings.integer("connections.max.idle.ms"),
        handshake_ms=settings.integer(f"{own}handshake.timeout.ms"),
        write_ms=settings.integer(f"{own}write.timeout.ms"),
        connections=settings.integer("max.connections"),
        connections_per_address=settings.integer("max.connections.per.ip"),
        overrides=_read_overrides(settings),
        backlog=settings.integer("socket.listen.backlog.size"),
        failed_login_delay_ms=settings.integer("connection.failed.authentication.delay.ms"),
    )


def _read_overrides(settings: Settings) -> tuple[tuple[str, int], ...]:
    key = "max.connections.per.ip.overrides"
    overrides = []
    for text in settings.items(key):
        address, colon, count = text.rpartition(":")
        if not colon or not address or re.fullmatch(r"[0-9]{1,10}", count) is None:
            raise settings.refuse(key, f"address:count,..., found {text!r}")
        overrides.append((address.strip("[]"), int(count)))
    return tuple(overrides)


def _read_topics(settings: Settings) -> dict[str, object]:
    """What the active controller does with topics."""
    given = {key: text.strip() for key, text, _ in settings.entries()}
    for key in ("num.partitions", "default.replication.factor"):
        settings.integer(key)
    for key in ("create.topic.policy.class.name", "alter.config.policy.class.name"):
        if settings.text(key):
            # A node that ignored it would allow what the policy forbids.
            raise settings.refuse(key, "none, as Java's classes do not run here")
    for key, wrong in setting_errors(given).items():
        raise settings.refuse(key, f"a value that topics can have ({wrong})")
    for key, wrong in group_setting_errors(given).items():
        raise settings.refuse(key, f"a bound for groups ({wrong})")
    interval_ms = settings.integer("leader.imbalance.check.interval.seconds") * 1000
    return {
        "resource_settings": {
            key: given[key] for key in SETTINGS | GROUP_SETTINGS if key in given
        },
        "mutation_burst_seconds": settings.integer("controller.quota.window.num")
        * settings.integer("controller.quota.window.size.seconds"),
        "deletes_topics": settings.flag("delete.topic.enable"),
        "rebalance_interval_ms": interval_ms * settings.flag("auto.leader.rebalance.enable"),
        "unclean_interval_ms": settings.integer("unclean.leader.election.interval.ms"),
    }


def _read_own(settings: Settings) -> dict[str, object]:
    place = None
    text = settings.text("kraftwire.prometheus.listener")
    if text:
        place = config_listeners.split(text)
        if place is None:
            raise settings.refuse("kraftwire.prometheus.listener", "host:port")
    return {
        "rack": settings.text("broker.rack"),
        "handover": settings.choice("kraftwire.leader.handover"),
        "describe_leader_last_fetch": settings.choice(
            "kraftwire.describe.quorum.leader.last.fetch"
        ),
        "prometheus": place,
        "capture_file": settings.text("kraftwire.capture.file") or None,
        "log_level": settings.choice("kraftwire.log.level"),
    }
