"""The keys of a properties file that a node uses: kind, default, allowed values.

Also the draft names of keys in KIP-595. `protocol.kafka_keys` lists Kafka's other keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from kraftwire.properties import suggestion
from kraftwire.raft.config import SNAPSHOT_BYTES_MAX
from kraftwire.security.credentials import MECHANISMS

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `kind` is `int`, `bool`, `list`, `text` or `choice`; `low` and `high` bound an int,
    `choices` a choice. A default of None means: not set."""

    name: str
    kind: str
    default: int | bool | str | None = None
    low: int = -LONG_MAX
    high: int = INT_MAX
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.kind == "int":
            if self.low == -LONG_MAX:
                return "a whole number"
            if self.high in (INT_MAX, LONG_MAX):
                return f"a whole number of at least {self.low}"
            return f"a whole number from {self.low} to {self.high}"
        if self.kind == "bool":
            return "true or false"
        if self.kind == "choice":
            return " or ".join(self.choices)
        return "a list separated by commas" if self.kind == "list" else "a text"


def _timer(name: str, default: int) -> Key:
    return Key(name, "int", default, 0)


_TABLE = (
    Key("process.roles", "list"),
    Key("node.id", "int", None, 0),
    Key("listeners", "list"),
    Key("advertised.listeners", "list"),
    Key("controller.listener.names", "list"),
    Key("listener.security.protocol.map", "list"),
    Key("inter.broker.listener.name", "text"),
    Key("security.inter.broker.protocol", "text"),
    Key("log.dirs", "list"),
    Key("log.dir", "list", "/tmp/kafka-logs"),
    Key("metadata.log.dir", "text"),
    Key("broker.rack", "text"),
    Key("controller.quorum.voters", "list"),
    Key("controller.quorum.bootstrap.servers", "list"),
    _timer("controller.quorum.election.timeout.ms", 1000),
    _timer("controller.quorum.fetch.timeout.ms", 2000),
    _timer("controller.quorum.election.backoff.max.ms", 1000),
    _timer("controller.quorum.append.linger.ms", 25),
    _timer("controller.quorum.request.timeout.ms", 2000),
    _timer("controller.quorum.retry.backoff.ms", 20),
    Key("controller.quorum.auto.join.enable", "bool", False),
    Key("controller.quorum.fetch.max.bytes", "int", 1024 * 1024, 1),
    Key("controller.quorum.fetch.snapshot.max.bytes", "int", 1024 * 1024, 1),
    Key("metadata.log.max.record.bytes.between.snapshots", "int", 20 * 1024 * 1024, 1, LONG_MAX),
    Key("metadata.log.max.snapshot.interval.ms", "int", 3_600_000, 0, LONG_MAX),
    Key("metadata.max.retention.bytes", "int", 100 * 1024 * 1024, high=LONG_MAX),
    Key("metadata.max.retention.ms", "int", 7 * 24 * 3600 * 1000, high=LONG_MAX),
    Key("internal.metadata.delete.delay.millis", "int", 60_000, 0, LONG_MAX),
    Key("metadata.log.segment.bytes", "int", 1024 * 1024 * 1024, 8 * 1024 * 1024),
    Key("internal.metadata.log.segment.bytes", "int", None, 1),
    Key("metadata.log.segment.ms", "int", 7 * 24 * 3600 * 1000, high=LONG_MAX),
    Key("internal.metadata.max.batch.size.in.bytes", "int", 8 * 1024 * 1024, 1),
    _timer("metadata.max.idle.interval.ms", 500),
    Key("broker.heartbeat.interval.ms", "int", 2000, 1),
    Key("broker.session.timeout.ms", "int", 9000, 1),
    Key("request.timeout.ms", "int", 30_000, 1),
    Key("socket.request.max.bytes", "int", 100 * 1024 * 1024, 1),
    Key("socket.listen.backlog.size", "int", 50, 1),
    Key("connections.max.idle.ms", "int", 600_000, high=LONG_MAX),
    Key("max.connections", "int", INT_MAX, 0),
    Key("max.connections.per.ip", "int", INT_MAX, 0),
    Key("max.connections.per.ip.overrides", "list"),
    # Our own. `quorum.retry.backoff.max.ms` is a name of KIP-595 that no release of Kafka has.
    Key("quorum.retry.backoff.max.ms", "int", None, 0),
    Key("kraftwire.leader.handover", "choice", "never", choices=("auto", "always", "never")),
    Key("num.partitions", "int", 1, 1),
    Key("default.replication.factor", "int", 1),
    Key("auto.leader.rebalance.enable", "bool", True),
    Key("leader.imbalance.check.interval.seconds", "int", 300, 1, LONG_MAX),
    Key("unclean.leader.election.interval.ms", "int", 300_000, 1, LONG_MAX),
    Key("delete.topic.enable", "bool", True),
    Key("controller.quota.window.num", "int", 11, 1),
    Key("controller.quota.window.size.seconds", "int", 1, 1),
    Key("create.topic.policy.class.name", "text"),
    Key("alter.config.policy.class.name", "text"),
    Key("kraftwire.describe.quorum.leader.last.fetch", "choice", "now", choices=("now", "-1")),
    Key("kraftwire.prometheus.listener", "text"),
    Key("kraftwire.listener.read.only", "list"),
    Key("kraftwire.snapshot.download.max.bytes", "int", SNAPSHOT_BYTES_MAX, 1, LONG_MAX),
    Key("kraftwire.voter.principals", "text"),
    Key("connection.failed.authentication.delay.ms", "int", 100, 0),
    Key("authorizer.class.name", "text"),
    Key("super.users", "text"),
    Key("allow.everyone.if.no.acl.found", "bool", False),
    Key("delegation.token.secret.key", "text"),
    Key("delegation.token.max.lifetime.ms", "int", 7 * 24 * 3600 * 1000, 1, LONG_MAX),
    Key("delegation.token.expiry.time.ms", "int", 24 * 3600 * 1000, 1, LONG_MAX),
    Key("delegation.token.expiry.check.interval.ms", "int", 3_600_000, 1, LONG_MAX),
    Key("kraftwire.capture.file", "text"),
    Key("kraftwire.connection.handshake.timeout.ms", "int", 30_000, 1),
    Key("kraftwire.connection.write.timeout.ms", "int", 30_000, 1),
    Key(
        "kraftwire.log.level",
        "choice",
        "info",
        choices=("debug", "info", "warning", "error"),
    ),
)

KEYS: dict[str, Key] = {key.name: key for key in _TABLE}

# Names in the text of KIP-595 and of older releases, and the present names.
DRAFT_NAMES = {
    "quorum.voters": "controller.quorum.voters",
    "quorum.bootstrap.servers": "controller.quorum.bootstrap.servers",
    "bootstrap.servers": "controller.quorum.bootstrap.servers",
    "quorum.fetch.timeout.ms": "controller.quorum.fetch.timeout.ms",
    "quorum.election.timeout.ms": "controller.quorum.election.timeout.ms",
    "quorum.election.backoff.max.ms": "controller.quorum.election.backoff.max.ms",
    "quorum.election.jitterbackoff.max.ms": "controller.quorum.election.backoff.max.ms",
    "quorum.append.linger.ms": "controller.quorum.append.linger.ms",
    "quorum.request.timeout.ms": "controller.quorum.request.timeout.ms",
    "quorum.retry.backoff.ms": "controller.quorum.retry.backoff.ms",
    "broker.id": "node.id",
    # Kafka's own name before 4.0.
    "delegation.token.master.key": "delegation.token.secret.key",
}

# Kafka passes keys with these prefixes on to plug-ins without knowing their names.
KAFKA_PREFIXES = ("listener.name.", "rlmm.config.", "rsm.config.", "config.providers.")


_SECURITY_KEY = re.compile(
    r"(?:listener\.name\.(?P<listener>[^.]+)\.(?:(?P<mechanism>[\w-]+)\.)?)?"
    r"(?P<key>(?:ssl|sasl|connections\.max\.reauth|principal\.builder)\..*)"
)


def is_security_key(key: str) -> bool:
    """Whether a key says how listeners and connections are secured: `config_security` reads it."""
    return _SECURITY_KEY.fullmatch(key) is not None


def security_key_problem(key: str, listeners: Collection[str], known: Collection[str]) -> str:
    """Return why such a key has no effect, empty if it may have one.

    `listeners` are those that the file names, in lower case; `known` are Kafka's keys.
    """
    match = _SECURITY_KEY.fullmatch(key)
    assert match is not None
    listener, mechanism, name = match["listener"], match["mechanism"], match["key"]
    if listener is not None and listener not in listeners:
        if listener.lower() in listeners:
            return f"has no effect: write {listener.lower()}, in lower case"
        return f"has no effect: no listener is named {listener}{suggestion(listener, listeners)}"
    if mechanism is not None and mechanism.upper() not in MECHANISMS:
        return f"has no effect: {mechanism} is no mechanism, such as scram-sha-512"
    if mechanism is not None and mechanism != mechanism.lower():
        return f"has no effect: write {mechanism.lower()}, in lower case"
    return "" if name in known else f"is not a known key{suggestion(name, known)}"
