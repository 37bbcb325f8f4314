"""Other people's clients log in at a node of ours, by every mechanism that they share with it.

The users for SCRAM are those that `storage format --add-scram` made.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.testing.ports import free_ports
from tests.support.kafka.java import run_kafka_tool
from tests.support.nodes.process import NodeProcess

_SECURITY = "org.apache.kafka.common.security."
_PLAIN = f"{_SECURITY}plain.PlainLoginModule required"
_SCRAM = f"{_SECURITY}scram.ScramLoginModule required"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOPIC = "__cluster_metadata"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The client listener of a node with the user alice, a super user."""
    folder = tmp_path_factory.mktemp("clients")
    client, controller = free_ports(2)
    lines = [
        "process.roles=broker,controller",
        "node.id=1",
        f"listeners=CLIENT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names=CONTROLLER",
        f"controller.quorum.voters=1@127.0.0.1:{controller}",
        "listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        f"log.dirs={folder / 'data'}",
        f"listener.name.client.sasl.enabled.mechanisms={','.join(MECHANISMS)}",
        f'listener.name.client.plain.sasl.jaas.config={_PLAIN} user_alice="alice-secret";',
        f"listener.name.client.scram-sha-256.sasl.jaas.config={_SCRAM};",
        f"listener.name.client.scram-sha-512.sasl.jaas.config={_SCRAM};",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:alice;User:ANONYMOUS",
        "kraftwire.log.level=debug",
    ]
    config = folder / "node.properties"
    config.write_text("\n".join(lines))
    users = [f"{name}=[name=alice,password=alice-secret]" for name in MECHANISMS[1:]]
    words = [word for user in users for word in ("--add-scram", user)]
    with contextlib.redirect_stdout(io.StringIO()):
        command = ["storage", "format", "-t", "9CIbsF9FQuGtwD837BRpPA", "-c", str(config)]
        assert cli.main([*command, *words]) == 0
    node = NodeProcess(config)
    try:
        node.wait_for("event=broker-unfenced")
        yield f"127.0.0.1:{client}"
        assert "alice-secret" not in "\n".join(node.lines)
    finally:
        node.kill()
        node.close()


# Other people's libraries warn of this and that, so they run in a process of their own.
PROGRAMS = {
    "kafka": """
from kafka.admin import KafkaAdminClient
print(*KafkaAdminClient(
    bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
    sasl_plain_username="alice", sasl_plain_password=password,
    bootstrap_timeout_ms=1000 * int(seconds),
).list_topics())
""",
    "confluent_kafka": """
from confluent_kafka.admin import AdminClient
print(*AdminClient({
    "bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "log_level": "0",
    "sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password,
}).list_topics(timeout=float(seconds)).topics)
""",
    "aiokafka": """
import asyncio
from aiokafka.admin import AIOKafkaAdminClient
async def run():
    admin = AIOKafkaAdminClient(
        bootstrap_servers=address, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
        sasl_plain_username="alice", sasl_plain_password=password,
    )
    await admin.start()
    try:
        print(*await admin.list_topics())
    finally:
        await admin.close()
asyncio.run(run())
""",
}
_BEGIN = "import sys\naddress, mechanism, password, seconds = sys.argv[1:]\n"


def run(library: str, *words: str) -> subprocess.CompletedProcess[str]:
    """List the topics with a library; skips the test where it is missing."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    command = [sys.executable, "-W", "ignore", "-c", _BEGIN + PROGRAMS[library], *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("library", PROGRAMS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_clients_log_in(address: str, library: str, mechanism: str) -> None:
    """They send another user in front, older versions, or no ApiVersions after the login."""
    listed = run(library, address, mechanism, "alice-secret", "30")
    assert listed.stdout.split() == [TOPIC], listed.stderr


@pytest.mark.parametrize("library", PROGRAMS)
def test_wrong_passwords(address: str, library: str) -> None:
    """They end with an error; some try until their time is over."""
    refused = run(library, address, "PLAIN", "wrong", "2")
    assert (refused.returncode, refused.stdout) == (1, "")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafkas_own_tool(address: str, mechanism: str, tmp_path: Path) -> None:
    """With a file of Kafka's properties."""
    file = tmp_path / "client.properties"
    module = _PLAIN if mechanism == "PLAIN" else _SCRAM
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={module} username="alice" password="alice-secret";\n'
    )
    words = ("--bootstrap-server", address, "--command-config", file, "--list")
    listed = run_kafka_tool("org.apache.kafka.tools.TopicCommand", *words)
    assert listed.stdout.strip() == TOPIC
