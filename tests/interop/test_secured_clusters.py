"""Our commands against a real Kafka that speaks TLS and asks for a login, beside Kafka's own."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraftwire.client.sync import BlockingConnection
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from tests.support.kafka.quorum_tools import masked, ours, theirs
from tests.support.security.certificates import KEY_PASSWORD, PASSWORD, identity
from tests.support.security.kafka import (
    HOST,
    MODULES,
    USER,
    SecuredNode,
    client_properties,
    keytool,
    openssl,
    secured_cluster,
    write_properties,
)

# Sessions are short, so that they end during a test.
SESSION_MS = 2000


@dataclass(frozen=True)
class Kafka:
    """The node, its stores, and a folder for clients' files."""

    node: SecuredNode
    stores: Path
    folder: Path

    def options(self, listener: str, values: Mapping[str, str] | None) -> list[str]:
        """Address and file of a client."""
        words = self.node.through(listener)
        if values is not None:
            path = write_properties(self.folder / "client.properties", values)
            words += ["--command-config", path]
        return words

    def properties(
        self, protocol: str, mechanism: str | None = None, **more: str
    ) -> dict[str, str]:
        """The properties of a client, with others by keys whose dots are underscores."""
        named = {key.replace("_", "."): value for key, value in more.items()}
        return client_properties(protocol, self.stores, mechanism) | named

    @property
    def key_store(self) -> dict[str, str]:
        """The key of a client that the node knows."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.stores / "client.pem"),
        }


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One node for all tests, which change nothing."""
    folder = tmp_path_factory.mktemp("secured")
    with secured_cluster(folder, session_ms=SESSION_MS) as cluster:
        (node,) = cluster.nodes
        assert isinstance(node, SecuredNode)
        yield Kafka(node, folder / "stores", folder)


WAYS = [
    ("CONTROLLER", "SSL", None),
    ("TLS", "SSL", None),
    ("MUTUAL", "SSL", None),
    *(("LOGIN", "SASL_SSL", mechanism) for mechanism in MODULES),
    ("CONTROLLER_LOGIN", "SASL_SSL", "SCRAM-SHA-512"),
    ("CONTROLLER_LOGIN", "SASL_SSL", "PLAIN"),
    ("CLEAR_LOGIN", "SASL_PLAINTEXT", "SCRAM-SHA-256"),
]


@pytest.mark.parametrize(
    ("listener", "protocol", "mechanism"), WAYS, ids=[f"{way[0]} {way[2] or ''}" for way in WAYS]
)
def test_every_secured_listener_is_reached_with_kafkas_own_file(
    kafka: Kafka, listener: str, protocol: str, mechanism: str | None
) -> None:
    """The same file serves both tools, and both print the same."""
    values = kafka.properties(protocol, mechanism) | (
        kafka.key_store if listener == "MUTUAL" else {}
    )
    options = kafka.options(listener, values)
    for _ in range(4):  # an idle record may come between the two
        found = ours("describe", "--replication", *options)
        expected = theirs(*options, "describe", "--replication")
        assert (found.returncode, found.stderr) == (0, "")
        assert expected.returncode == 0, expected.stderr
        if masked(found.stdout) == masked(expected.stdout):
            break
    status = ours("describe", "--status", *options)
    assert (status.returncode, status.stderr) == (0, "")
    assert "LeaderId:               1" in status.stdout


def test_watch_and_long_connections_outlive_a_session(kafka: Kafka) -> None:
    """The node closes a connection whose session has ended at the next request."""
    values = kafka.properties("SASL_SSL", "SCRAM-SHA-256")
    watched = ours("watch", "--count", "3", *kafka.options("CONTROLLER_LOGIN", values))
    assert (watched.returncode, watched.stderr) == (0, "")
    assert "no answer" not in watched.stdout
    address = (HOST, kafka.node.listeners["LOGIN"])
    until = time.monotonic() + 2.5 * SESSION_MS / 1000
    with BlockingConnection(address, client_id="me", timeout_s=30, security=values) as connection:
        while time.monotonic() < until:
            connection.request(DescribeClusterRequest())
            time.sleep(0.2)


PORTS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "LOGIN": "SASL_SSL",
    "CLEAR_LOGIN": "SASL_PLAINTEXT",
}


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("own", PORTS.values())
def test_every_wrong_protocol_ends_a_command(kafka: Kafka, own: str, port: str) -> None:
    """With what the port speaks and what to set, where Kafka's tools wait for a minute."""
    right = PORTS[port]
    if own == right:
        return
    mechanism = "SCRAM-SHA-256" if own.startswith("SASL") else None
    values = None if own == "PLAINTEXT" else kafka.properties(own, mechanism)
    found = ours("describe", "--status", *kafka.options(port, values))
    address = f"{HOST}:{kafka.node.listeners[port]}"
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith(f"kraftwire: {address}: this port speaks {right}")
    assert f"and this client {own}: set security.protocol={right} " in found.stderr
    assert len(found.stderr.splitlines()) == 1
    if right.startswith("SASL") and not own.startswith("SASL"):
        assert "SCRAM-SHA-512" in found.stderr


def _wrong(kafka: Kafka) -> dict[str, tuple[str, dict[str, str], int, str]]:
    other = str(kafka.stores / "other-ca.pem")
    Path(other).write_text(identity("x", of="Another CA").chain_pem)
    jaas = kafka.properties("SASL_SSL", "PLAIN")["sasl.jaas.config"]
    wrong = jaas.replace("alice-secret", "wrong-secret")
    return {
        "password": (
            "LOGIN", kafka.properties("SASL_SSL", "PLAIN", sasl_jaas_config=wrong), 1,
            f"the login of user '{USER}' by PLAIN was refused: Authentication failed: Invalid",
        ),
        "SCRAM password": (
            "CLEAR_LOGIN", kafka.properties(
                "SASL_PLAINTEXT", "SCRAM-SHA-256",
                sasl_jaas_config=wrong.replace(MODULES["PLAIN"], MODULES["SCRAM-SHA-256"]),
            ), 1, f"the login of user '{USER}' by SCRAM-SHA-256 was refused",
        ),
        "authority": (
            "TLS", kafka.properties("SSL", ssl_truststore_location=other), 2,
            "the trust check failed: the certificate of CN=node, issued by CN=Test CA",
        ),
        "no client certificate": (
            "MUTUAL", kafka.properties("SSL"), 2,
            "the node refused a client without a certificate",
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    "case", ["password", "SCRAM password", "authority", "no client certificate"]
)
def test_what_does_not_pass_ends_with_one_line(kafka: Kafka, case: str) -> None:
    """2 for what the file cures, 1 for what the node refuses; no secret in any of it."""
    listener, values, code, text = _wrong(kafka)[case]
    found = ours("describe", "--status", *kafka.options(listener, values))
    assert (found.returncode, found.stdout) == (code, "")
    assert text in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert "secret" not in found.stderr


def test_another_host_is_refused_by_its_name(kafka: Kafka) -> None:
    """The certificate is for localhost and 127.0.0.1; [::1] is neither."""
    port = kafka.node.listeners["TLS"]
    words = kafka.options("TLS", kafka.properties("SSL"))
    found = ours("describe", "--status", "--bootstrap-server", f"127.1:{port}", *words[2:])
    assert found.returncode == 2
    assert "the host check failed: the certificate of CN=node is not for this host" in found.stderr


def _made(folder: Path, name: str) -> Path:
    """A store of a client's key, made by one of the tools that people use."""
    key, chain = folder / "client.key", folder / "client.crt"
    store = folder / name
    export = ["pkcs12", "-export", "-inkey", key, "-in", chain, "-out", store]
    export += ["-name", "client", "-passout", f"pass:{PASSWORD}"]
    if name.startswith("openssl"):
        openssl(*export, *(["-legacy"] if "legacy" in name else []))
        return store
    source = folder / f"for-{name}.p12"
    export[export.index(store)] = source
    openssl(*export)
    kind = "JKS" if name.endswith("jks") else "PKCS12"
    keytool(
        "-importkeystore", "-srckeystore", source, "-srcstorepass", PASSWORD,
        "-destkeystore", store, "-deststorepass", PASSWORD, "-deststoretype", kind,
        *(["-destkeypass", KEY_PASSWORD] if kind == "JKS" else []),
        legacy="legacy" in name,
    )  # fmt: skip
    return store


@pytest.mark.parametrize(
    "name",
    ["openssl.p12", "openssl-legacy.p12", "keytool.p12", "keytool-legacy.p12", "keytool.jks"],
)
def test_a_key_store_of_any_tool_is_shown_to_the_node(kafka: Kafka, name: str) -> None:
    """The node asks for a certificate, and Kafka's tool reads the same store."""
    values = kafka.properties("SSL") | {
        "ssl.keystore.location": str(_made(kafka.stores, name)),
        "ssl.keystore.password": PASSWORD,
    }
    if name.endswith("jks"):
        values["ssl.key.password"] = KEY_PASSWORD
    options = kafka.options("MUTUAL", values)
    found = ours("describe", "--status", *options)
    assert found.returncode == 0, found.stderr
    if "keytool" in name:
        assert theirs(*options, "describe", "--status").returncode == 0


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "trust-legacy.p12"])
def test_a_trust_store_of_keytool_is_read(kafka: Kafka, name: str) -> None:
    """Without any key, only the authority."""
    store = kafka.stores / name
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", kafka.stores / "ca.pem",
        "-keystore", store, "-storepass", PASSWORD,
        "-storetype", "JKS" if name.endswith("jks") else "PKCS12",
        legacy="legacy" in name,
    )  # fmt: skip
    values = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": PASSWORD,
    }
    found = ours("describe", "--status", *kafka.options("TLS", values))
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("algorithm", ["PBE-SHA1-3DES", None], ids=["PBES1", "PBES2"])
def test_an_encrypted_key_of_openssl_is_read(kafka: Kafka, algorithm: str | None) -> None:
    """Of both kinds; Java 17 itself reads the older one alone."""
    locked = kafka.stores / f"{algorithm}.key"
    kind = ["-v1", algorithm] if algorithm else []
    openssl(
        "pkcs8", "-topk8", *kind, "-in", kafka.stores / "client.key", "-out", locked,
        "-passout", f"pass:{KEY_PASSWORD}",
    )  # fmt: skip
    both = locked.read_text() + (kafka.stores / "client.crt").read_text()
    together = kafka.stores / f"{algorithm}.pem"
    together.write_text(both)
    together.chmod(0o600)
    values = kafka.properties("SSL") | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(together),
        "ssl.key.password": KEY_PASSWORD,
    }
    found = ours("describe", "--status", *kafka.options("MUTUAL", values))
    assert (found.returncode, found.stderr) == (0, "")


def test_spark_reads_a_metadata_log_behind_tls_and_a_login(kafka: Kafka) -> None:
    """With the options of Spark's own Kafka source."""
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    from kraftwire.spark.sources.metadata import MetadataDataSource

    values = kafka.properties("SASL_SSL", "SCRAM-SHA-512")
    address = f"{HOST}:{kafka.node.listeners['CONTROLLER_LOGIN']}"
    options = {f"kafka.{key}": value for key, value in values.items()}
    source = MetadataDataSource({"bootstrapControllers": address, **options})
    reader = source.reader(source.schema())
    rows = [row for part in reader.partitions() for batch in reader.read(part)
            for row in batch.to_pylist()]  # fmt: skip
    assert any(row["type"] == "UserScramCredentialRecord" for row in rows)


def test_the_properties_of_the_page_work_as_they_stand(kafka: Kafka) -> None:
    """Files and users are those of the page; only the folder is another."""
    page = Path(__file__).resolve().parents[2] / "docs" / "secured-clusters.md"
    blocks = re.findall(r"^```properties\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    stores = kafka.folder / "page"
    stores.mkdir()
    for name in ("ca.pem", "client.pem", "client.key", "client.crt"):
        copied = shutil.copy(kafka.stores / name, stores / name)
        Path(copied).chmod(0o600)
    shutil.copy(_made(stores, "keytool.p12"), stores / "client.p12")
    (stores / "client.p12").chmod(0o600)
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", stores / "ca.pem",
        "-keystore", stores / "trust.p12", "-storepass", PASSWORD, "-storetype", "PKCS12",
    )  # fmt: skip
    for block in blocks:
        listener = "MUTUAL" if "keystore" in block else "TLS"
        listener = "LOGIN" if "SASL_SSL" in block else listener
        listener = "CLEAR_LOGIN" if "SASL_PLAINTEXT" in block else listener
        path = kafka.folder / "page.properties"
        path.write_text(re.sub(r"(location=)", rf"\1{stores}/", block))
        words = [*kafka.node.through(listener), "--command-config", str(path)]
        found = ours("describe", "--status", *words)
        assert (found.returncode, found.stderr) == (0, ""), block
