"""Kafka's own tools change ACLs, users, quotas, configurations and tokens of a cluster of ours.

They ask a broker, which passes everything on to a controller of ours. Both ask for
logins and for rights, so each change shows at both: at the broker, and at the controller's own
listener.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.java import shared_tools
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.quorum_tools import ours
from tests.support.security.kafka import MODULES, write_properties

CONTROLLER, BROKER = 1, 11
PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-512"
_NODE = f'{MODULES[PLAIN]} required username="node" password="node-secret"'
_LISTENERS = {
    f"listener.name.{name}.{key}": value
    for name in ("controller", "plaintext")
    for key, value in (
        ("sasl.enabled.mechanisms", f"{PLAIN},{SCRAM}"),
        ("plain.sasl.jaas.config", f'{_NODE} user_node="node-secret";'),
        ("scram-sha-512.sasl.jaas.config", f"{MODULES[SCRAM]} required;"),
    )
}
PROPERTIES = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": PLAIN,
    "sasl.mechanism.inter.broker.protocol": PLAIN,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node",
    "delegation.token.secret.key": "a-secret",
    **_LISTENERS,
}
_LOGIN = {"security.protocol": "SASL_PLAINTEXT"}
_AS_NODE = {**_LOGIN, "sasl.mechanism": PLAIN, "sasl.jaas.config": f"{_NODE};"}

_Result = subprocess.CompletedProcess[str]


class Cluster:
    """The broker and the controller, and files with logins for tools."""

    def __init__(self, quorum: MixedQuorum, folder: Path) -> None:
        self._quorum = quorum
        self._folder = folder
        self.node = write_properties(folder / "node.properties", _AS_NODE)

    def login(self, name: str, password: str, options: str = "") -> str:
        """A file with which somebody logs in by SCRAM."""
        jaas = f'{MODULES[SCRAM]} required username="{name}" password="{password}"{options};'
        values = {**_LOGIN, "sasl.mechanism": SCRAM, "sasl.jaas.config": jaas}
        return write_properties(self._folder / f"{name}.properties", values)

    def run(self, tool: str, *words: str, who: str = "") -> _Result:
        """Ask the broker."""
        where = ("--bootstrap-server", self._quorum.bootstrap_servers)
        return shared_tools().run(tool, *where, "--command-config", who or self.node, *words)

    def change(self, tool: str, *words: str) -> str:
        """Ask the broker for what it has to do; returns what the tool printed."""
        result = self.run(tool, *words)
        assert result.returncode == 0, result.stdout + result.stderr
        return str(result.stdout)

    def lists(self, who: str) -> bool:
        """Whether the broker lists alice's ACLs to somebody."""
        return "User:alice" in self.run("acls", "--list", who=who).stdout

    def describes(self, who: str) -> str:
        """Ask the controller for the quorum; returns why it refuses, or an empty text."""
        where = ("--bootstrap-controller", self._quorum.address(CONTROLLER))
        result = ours(*where, "--command-config", who, "describe", "--status")
        return result.stderr if result.returncode else ""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One controller of ours, and a broker that has registered."""
    with MixedQuorum(
        tmp_path,
        {CONTROLLER: OURS},
        PROPERTIES,
        brokers={BROKER: JAVA},
        client={key: str(value) for key, value in _AS_NODE.items()},
    ) as quorum:
        quorum.start(CONTROLLER)
        quorum.members[BROKER].start()
        quorum.members[BROKER].wait_ready()
        yield Cluster(quorum, tmp_path)


def test_tools_of_kafka_administrate_a_controller_of_ours(cluster: Cluster) -> None:
    """What they add has its effect, and what they remove has it no more (C-ACL, C-SCR, C-CQ,
    C-TOK)."""
    credential = f"{SCRAM}=[iterations=4096,password=hush]"
    user = ("--entity-type", "users", "--entity-name", "alice")
    cluster.change("configs", "--alter", *user, "--add-config", credential)
    alice = cluster.login("alice", "hush")
    assert "not authorized: this needs" in cluster.describes(alice)

    allowed = ("--allow-principal", "User:alice", "--cluster")
    rights = ("--operation", "Describe", "--operation", "Alter")
    cluster.change("acls", "--add", *allowed, *rights)
    assert cluster.describes(alice) == ""
    wait_until(lambda: cluster.lists(alice), "a login and rights at the broker")

    quota = ("--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    cluster.change("configs", "--alter", *user, *quota)
    shown = cluster.change("configs", "--describe", *user)
    assert "producer_byte_rate=1024.0" in shown
    assert f"{SCRAM}=iterations=4096" in shown
    fraction = cluster.run("configs", "--alter", *user, "--add-config", "producer_byte_rate=0.5")
    assert "InvalidRequestException" in fraction.stderr

    group = ("--entity-type", "groups", "--entity-name", "g")
    session = "consumer.session.timeout.ms"
    cluster.change("configs", "--alter", *group, "--add-config", f"{session}=50000")
    assert f"{session}=50000" in cluster.change("configs", "--describe", *group)
    short = cluster.run("configs", "--alter", *group, "--add-config", f"{session}=1")
    assert "group.consumer.min.session.timeout.ms" in short.stderr
    metrics = ("--entity-type", "client-metrics", "--entity-name", "m")
    cluster.change("configs", "--alter", *metrics, "--add-config", "interval.ms=1000,metrics=[a,b]")
    assert "interval.ms=1000" in cluster.change("configs", "--describe", *metrics)

    check_tokens(cluster, alice)
    cluster.change("acls", "--remove", "--force", *allowed, *rights)
    assert "not authorized: this needs" in cluster.describes(alice)
    cluster.change("configs", "--alter", *user, "--delete-config", SCRAM)
    assert "Authentication failed" in cluster.describes(alice)


def check_tokens(cluster: Cluster, alice: str) -> None:
    """A token of alice's does what she may, but for getting more of them (C-TOK)."""
    words = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    created = cluster.run("tokens", *words, who=alice)
    assert created.returncode == 0, created.stderr
    found = re.search(r"^(\S{22})\s+(\S{88})\s+User:alice\s", created.stdout, re.MULTILINE)
    assert found is not None, created.stdout
    token = cluster.login(found[1], found[2], " tokenauth=true")
    assert cluster.describes(token) == ""
    wait_until(lambda: cluster.lists(token), "a login by the token at the broker")
    more = cluster.run("tokens", *words, who=token)
    assert more.returncode == 1
    assert "Delegation Token requests are not allowed" in more.stderr
    others = cluster.run("tokens", *words, "--owner-principal", "User:bob", who=alice)
    assert "Delegation Token authorization failed" in others.stderr
    hmac = ("--hmac", found[2])
    renewed = cluster.run("tokens", "--renew", "--renew-time-period", "-1", *hmac, who=alice)
    assert renewed.returncode == 0, renewed.stderr
    foreign = cluster.run("tokens", "--expire", "--expiry-time-period", "-1", *hmac)
    assert foreign.returncode == 1
    gone = cluster.run("tokens", "--expire", "--expiry-time-period", "-1", *hmac, who=alice)
    assert gone.returncode == 0, gone.stderr
    assert "Authentication failed" in cluster.describes(token)
