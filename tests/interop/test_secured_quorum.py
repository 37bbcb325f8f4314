"""Quorums of both kinds whose listeners ask for logins, and a broker of Kafka's at them.

Users and ACLs are made with Kafka's own tools while a Java controller leads, and count at our node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.quorum_tools import ours, theirs

NODE = 3
_SECURITY = "org.apache.kafka.common.security."
_PLAIN = f"{_SECURITY}plain.PlainLoginModule required"
_SCRAM = f"{_SECURITY}scram.ScramLoginModule required"
NODES = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.controller.plain.sasl.jaas.config": (
        f'{_PLAIN} username="node" password="node-secret" user_node="node-secret" '
        'user_bob="bob-secret";'
    ),
    "listener.name.controller.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:ANONYMOUS",
}
ADMIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{_PLAIN} username="node" password="node-secret";',
}


def client_file(folder: Path, module: str, mechanism: str, user: str) -> Path:
    """Client properties of a user whose password is known to all."""
    path = folder / f"{user}-{mechanism}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} username="{user}" password="{user}-secret";\n'
    )
    return path


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedQuorum]:
    """Two Java controllers, one of ours, and a Java broker; a Java controller leads."""
    folder = tmp_path_factory.mktemp("secured")
    kinds = {1: JAVA, 2: JAVA, NODE: OURS}
    with MixedQuorum(folder, kinds, NODES, brokers={11: JAVA}, client=ADMIN) as quorum:
        quorum.start(1, 2)
        quorum.leader(among=(1, 2))
        quorum.start(NODE, 11)
        quorum.wait_commit(0, NODE)
        yield quorum


def test_users_and_acls_of_the_log(quorum: MixedQuorum, tmp_path: Path) -> None:
    """Made by Kafka's tools at a Java leader, they count at our node: for theirs and for ours."""
    leader = quorum.leader(among=(1, 2))
    admin = client_file(tmp_path, _PLAIN, "PLAIN", "node")
    alice = client_file(tmp_path, _SCRAM, "SCRAM-SHA-512", "alice")
    there = ("--bootstrap-controller", quorum.address(leader), "--command-config", admin)
    credential = "SCRAM-SHA-512=[iterations=4096,password=alice-secret]"
    user = ("--entity-type", "users", "--entity-name", "alice")
    broker = ("--bootstrap-server", quorum.address(11))
    run_kafka_tool(
        "org.apache.kafka.tools.ConfigCommand",
        *broker, "--alter", "--add-config", credential, *user
    )
    here = ("--bootstrap-controller", quorum.address(NODE), "--command-config", str(alice))
    mark = quorum.wait_commit(0, NODE)
    refused = ours(*here, "describe", "--status")
    assert refused.returncode == 1
    assert "needs ALTER on the cluster" in refused.stderr
    allow = ("--add", "--allow-principal", "User:alice", "--cluster")
    operations = ("--operation", "Alter", "--operation", "Describe")
    run_kafka_tool("org.apache.kafka.tools.AclCommand", *there, *allow, *operations)
    quorum.wait_commit(mark, NODE)
    for tool in (ours, theirs):
        described = tool(*here, "describe", "--status")
        assert described.returncode == 0, described.stderr
        assert f"LeaderId:               {leader}" in described.stdout


def test_wrong_logins_are_final(quorum: MixedQuorum, tmp_path: Path) -> None:
    """Both tools end at once, with the same text of the node."""
    wrong = client_file(tmp_path, _PLAIN, "PLAIN", "carol")
    here = ("--bootstrap-controller", quorum.address(NODE), "--command-config", str(wrong))
    for tool in (ours, theirs):
        refused = tool(*here, "describe", "--status")
        assert refused.returncode == 1
        assert "Authentication failed: Invalid username or password" in (
            refused.stdout + refused.stderr
        )
    bob = client_file(tmp_path, _PLAIN, "PLAIN", "bob")
    refused = ours(*here[:3], str(bob), "describe", "--status")
    assert "CLUSTER_AUTHORIZATION_FAILED" in refused.stderr


def test_java_controllers_elect_our_node(quorum: MixedQuorum) -> None:
    """They log in at it, and it at them, whoever leads."""
    former = quorum.depose(NODE)
    mark = quorum.wait_commit(0)
    quorum.start(former)
    quorum.wait_commit(mark, *quorum.members.keys() - {11})
    broker = quorum.members[11]
    assert not broker.ended()

    def is_fetching() -> bool:
        found = quorum.replica(11)
        return found is not None and found.log_end_offset >= quorum.status().high_watermark - 10

    wait_until(is_fetching, "the broker at the end of the log", quorum.last_lines)
    text = "\n".join(quorum.members[NODE].lines)
    assert "secret" not in text
    assert quorum.check_logs_agree() > 0
