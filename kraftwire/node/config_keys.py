"""The keys of a properties file that a node uses: kind, default, allowed values, what they set.

A row's other names are those in KIP-595 and of older releases. `protocol.kafka_keys` lists Kafka's
other keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from kraftwire.controller.group_configs import GROUP_SETTINGS
from kraftwire.controller.topic_keys import SETTINGS
from kraftwire.properties import INT_MAX, LONG_MAX, Key, Properties
from kraftwire.properties_file import suggestion
from kraftwire.protocol.kafka_keys import kafka_keys
from kraftwire.raft.config import SNAPSHOT_BYTES_MAX
from kraftwire.security.credentials import MECHANISMS

_MIB = 1024 * 1024
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


def _timer(name: str, default: int, sets: str, *aliases: str) -> Key:
    """A timer of Raft; KIP-595 has its name without `controller.`."""
    aliases = (name.removeprefix("controller."), *aliases)
    return Key(name, "int", default, 0, sets=sets, aliases=aliases)


def _number(name: str, default: int, sets: str, low: int = -LONG_MAX) -> Key:
    return Key(name, "int", default, low, sets=sets)


def _long(name: str, default: int, sets: str, low: int = -LONG_MAX) -> Key:
    return Key(name, "int", default, low, LONG_MAX, sets=sets)


_BOOTSTRAP = ("quorum.bootstrap.servers", "bootstrap.servers")

_TABLE = (
    Key("process.roles", "list"),
    Key("node.id", "int", None, 0, aliases=("broker.id",)),
    Key("listeners", "list"),
    Key("advertised.listeners", "list"),
    Key("controller.listener.names", "list"),
    Key("listener.security.protocol.map", "list"),
    Key("inter.broker.listener.name", "text"),
    Key("security.inter.broker.protocol", "text"),
    Key("log.dirs", "list"),
    Key("log.dir", "list", "/tmp/kafka-logs"),
    Key("metadata.log.dir", "text"),
    Key("broker.rack", "text", sets="node.rack"),
    Key("controller.quorum.voters", "list", aliases=("quorum.voters",)),
    Key("controller.quorum.bootstrap.servers", "list", aliases=_BOOTSTRAP),
    _timer("controller.quorum.election.timeout.ms", 1000, "timers.election_timeout_ms"),
    _timer("controller.quorum.fetch.timeout.ms", 2000, "timers.fetch_timeout_ms"),
    _timer(
        "controller.quorum.election.backoff.max.ms", 1000, "timers.election_backoff_max_ms",
        "quorum.election.jitterbackoff.max.ms",
    ),
    _timer("controller.quorum.append.linger.ms", 25, "timers.append_linger_ms"),
    _timer("controller.quorum.request.timeout.ms", 2000, "timers.request_timeout_ms"),
    _timer("controller.quorum.retry.backoff.ms", 20, "timers.retry_backoff_ms"),
    # A name of KIP-595 that no release of Kafka has.
    Key("quorum.retry.backoff.max.ms", "int", None, 0),
    Key("controller.quorum.auto.join.enable", "bool", False, sets="node.auto_join"),
    _number("controller.quorum.fetch.max.bytes", _MIB, "node.fetch_max_bytes", 1),
    _number("controller.quorum.fetch.snapshot.max.bytes", _MIB, "node.fetch_snapshot_max_bytes", 1),
    Key(
        "metadata.log.max.record.bytes.between.snapshots", "int", 20 * _MIB, 1, LONG_MAX,
        sets="snapshots.between_bytes",
    ),
    _long("metadata.log.max.snapshot.interval.ms", _HOUR_MS, "snapshots.interval_ms", 0),
    _long("metadata.max.retention.bytes", 100 * _MIB, "snapshots.retention_bytes"),
    _long("metadata.max.retention.ms", 7 * _DAY_MS, "snapshots.retention_ms"),
    _long("internal.metadata.delete.delay.millis", 60_000, "snapshots.delete_delay_ms", 0),
    Key("metadata.log.segment.bytes", "int", 1024 * _MIB, 8 * _MIB),
    Key("internal.metadata.log.segment.bytes", "int", None, 1),
    _long("metadata.log.segment.ms", 7 * _DAY_MS, "node.segment_max_ms"),
    _number("internal.metadata.max.batch.size.in.bytes", 8 * _MIB, "node.batch_max_bytes", 1),
    _number("metadata.max.idle.interval.ms", 500, "node.idle_interval_ms", 0),
    _number("broker.heartbeat.interval.ms", 2000, "node.heartbeat_interval_ms", 1),
    _number("broker.session.timeout.ms", 9000, "node.session_timeout_ms", 1),
    _number("request.timeout.ms", 30_000, "node.request_timeout_ms", 1),
    _number("socket.request.max.bytes", 100 * _MIB, "limits.frame_max_bytes", 1),
    _number("socket.listen.backlog.size", 50, "limits.backlog", 1),
    _long("connections.max.idle.ms", 600_000, "limits.idle_ms"),
    _number("max.connections", INT_MAX, "limits.connections", 0),
    _number("max.connections.per.ip", INT_MAX, "limits.connections_per_address", 0),
    Key("max.connections.per.ip.overrides", "list"),
    Key("num.partitions", "int", 1, 1),
    Key("default.replication.factor", "int", 1),
    Key("auto.leader.rebalance.enable", "bool", True),
    Key("leader.imbalance.check.interval.seconds", "int", 300, 1, LONG_MAX),
    _long("unclean.leader.election.interval.ms", 300_000, "node.unclean_interval_ms", 1),
    Key("delete.topic.enable", "bool", True, sets="node.deletes_topics"),
    Key("controller.quota.window.num", "int", 11, 1),
    Key("controller.quota.window.size.seconds", "int", 1, 1),
    Key("create.topic.policy.class.name", "text"),
    Key("alter.config.policy.class.name", "text"),
    _number("connection.failed.authentication.delay.ms", 100, "limits.failed_login_delay_ms", 0),
    Key("authorizer.class.name", "text"),
    Key("super.users", "text"),
    Key("allow.everyone.if.no.acl.found", "bool", False),
    # Kafka's own name of it before 4.0 has "master".
    Key("delegation.token.secret.key", "text", aliases=("delegation.token.master.key",)),
    _long("delegation.token.max.lifetime.ms", 7 * _DAY_MS, "tokens.max_lifetime_ms", 1),
    _long("delegation.token.expiry.time.ms", _DAY_MS, "tokens.expiry_ms", 1),
    _long("delegation.token.expiry.check.interval.ms", _HOUR_MS, "tokens.check_interval_ms", 1),
    Key("connections.max.reauth.ms", "int", 0, 0, LONG_MAX),
    Key("sasl.server.max.receive.size", "int", 524_288, 0),
    Key("sasl.oauthbearer.allow.unverified.audience", "bool", False),
    Key("sasl.oauthbearer.allow.unverified.issuer", "bool", False),
    Key("sasl.oauthbearer.clock.skew.seconds", "int", 30, 0),
    Key("sasl.oauthbearer.jwks.endpoint.refresh.ms", "int", _HOUR_MS, 0, LONG_MAX),
    Key("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "int", 100, 0, LONG_MAX),
    Key("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "int", 10_000, 0, LONG_MAX),
    # Our own.
    Key(
        "kraftwire.leader.handover", "choice", "never", choices=("auto", "always", "never"),
        sets="node.handover",
    ),
    Key(
        "kraftwire.describe.quorum.leader.last.fetch", "choice", "now", choices=("now", "-1"),
        sets="node.describe_leader_last_fetch",
    ),
    Key("kraftwire.prometheus.listener", "text"),
    Key("kraftwire.listener.read.only", "list"),
    Key(
        "kraftwire.snapshot.download.max.bytes", "int", SNAPSHOT_BYTES_MAX, 1, LONG_MAX,
        sets="node.snapshot_max_bytes",
    ),
    Key("kraftwire.voter.principals", "text"),
    Key("kraftwire.capture.file", "text"),
    _number("kraftwire.connection.handshake.timeout.ms", 30_000, "limits.handshake_ms", 1),
    _number("kraftwire.connection.write.timeout.ms", 30_000, "limits.write_ms", 1),
    Key(
        "kraftwire.log.level", "choice", "info", choices=("debug", "info", "warning", "error"),
        sets="node.log_level",
    ),
)  # fmt: skip

KEYS: dict[str, Key] = {key.name: key for key in _TABLE}
ALIASES = {alias: key.name for key in _TABLE for alias in key.aliases}

# Kafka passes keys with these prefixes on to plug-ins without knowing their names.
_PLUG_INS = ("listener.name.", "rlmm.config.", "rsm.config.", "config.providers.")

# Where the names of listeners stand.
_LISTENER_KEYS = (
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
)

# A key that says how listeners and connections are secured: `config_security` reads it.
_SECURITY_KEY = re.compile(
    r"(?:listener\.name\.(?P<listener>[^.]+)\.(?:(?P<mechanism>[\w-]+)\.)?)?"
    r"(?P<key>(?:ssl|sasl|connections\.max\.reauth|principal\.builder)\..*)"
)


def read_node_properties(path: str, overrides: Iterable[str]) -> Properties:
    """Read a node's properties, with warnings of keys that have another effect than expected.

    Raises: UsageError as `Properties.read`, and for two different ids.
    """
    properties = Properties.read(path, overrides, KEYS)
    for alias in [name for name in properties.names() if name in ALIASES]:
        _adopt(properties, alias, ALIASES[alias])
    _warn_of_keys(properties)
    return properties


def _adopt(properties: Properties, alias: str, key: str) -> None:
    """Use another name of a key, unless the key is given too."""
    is_old_id = alias == "broker.id"
    if properties.spelling(key) == key:
        text = properties.text(key)
        if properties.text(alias) == text:
            return
        if is_old_id:  # Kafka still knows it: the two must be equal (R-CONF).
            raise properties.refuse(alias, f"the value of {key}, {text}")
        what = f"is overruled by {key} at {properties.origin(key)}"
    else:
        properties.adopt(key, alias)
        what = f"is {'the old' if is_old_id else 'another'} name of {key}"
    properties.warnings.append(f"{properties.place(alias)} {what}")


def _warn_of_keys(properties: Properties) -> None:
    """Warn of keys without effect and of unknown keys."""
    texts = (properties.text(key) or "" for key in _LISTENER_KEYS)
    parts = (part.partition(":")[0].strip() for text in texts for part in text.split(","))
    listeners = frozenset(part.lower() for part in parts)
    idle = []
    for key in properties.names():
        if key in KEYS or key in ALIASES or key in SETTINGS or key in GROUP_SETTINGS:
            continue
        security_key = _SECURITY_KEY.fullmatch(key)
        if security_key is not None:
            problem = _security_key_problem(security_key, listeners)
        elif key in kafka_keys() or key.startswith(_PLUG_INS):
            problem = ""
            idle.append(key)
        else:
            known = [*KEYS, *ALIASES, *kafka_keys()]
            problem = f"is not a known key{suggestion(key, known)}"
        if problem:
            properties.warnings.append(f"{properties.place(key)} {problem}")
    if idle:
        names = ", ".join(sorted(idle))
        properties.warnings.append(f"{properties.path}: without effect here: {names}")


def _security_key_problem(match: re.Match[str], listeners: Collection[str]) -> str:
    """Return why a key of security has no effect, empty if it may have one.

    `listeners` are those that the file names, in lower case.
    """
    listener, mechanism, name = match["listener"], match["mechanism"], match["key"]
    if listener is not None and listener not in listeners:
        if listener.lower() in listeners:
            return f"has no effect: write {listener.lower()}, in lower case"
        return f"has no effect: no listener is named {listener}{suggestion(listener, listeners)}"
    if mechanism is not None and mechanism.upper() not in MECHANISMS:
        return f"has no effect: {mechanism} is no mechanism, such as scram-sha-512"
    if mechanism is not None and mechanism != mechanism.lower():
        return f"has no effect: write {mechanism.lower()}, in lower case"
    return "" if name in kafka_keys() else f"is not a known key{suggestion(name, kafka_keys())}"
