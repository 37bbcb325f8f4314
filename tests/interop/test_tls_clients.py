"""Other people's TLS, decrypted: what librdkafka and Kafka's own client send to a server."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.tls import KeyLog
from tests.support.captures.builder import pcap_of
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.maven import requires_java
from tests.support.security.tls_server import TlsServer

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def _librdkafka(server: TlsServer) -> None:
    """List the cluster's topics."""
    admin = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")
    client = admin.AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{server.port}",
            "security.protocol": "ssl",
            "ssl.ca.location": str(server.certificate),
            "ssl.endpoint.identification.algorithm": "none",
            "client.id": "librdkafka-tls",
        }
    )
    assert [each.id for each in client.list_topics(timeout=30).brokers.values()] == [1]


def _java(server: TlsServer) -> None:
    """List the cluster's topics."""
    requires_java()
    config = server.folder / "client.properties"
    config.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={server.certificate}\n"
        "ssl.endpoint.identification.algorithm=\nclient.id=java-tls\n"
    )
    end = f"127.0.0.1:{server.port}"
    tool = "org.apache.kafka.tools.TopicCommand"
    run_kafka_tool(tool, "--bootstrap-server", end, "--command-config", config, "--list")


@pytest.mark.parametrize("version", VERSIONS, ids=lambda each: each.name)
@pytest.mark.parametrize("client", [_librdkafka, _java], ids=["librdkafka", "Java"])
def test_what_a_client_says_is_what_the_server_read(
    tmp_path: Path, client: Callable[[TlsServer], None], version: ssl.TLSVersion
) -> None:
    """Every request of every connection, and an answer to each."""
    with TlsServer(tmp_path, version) as server:
        client(server)
    capture = Capture([pcap_of(server.segments)], keys=KeyLog.read(str(server.keylog)))
    frames = list(capture)
    requests = [each.data for each in frames if each.is_request]
    assert sorted(requests) == sorted(server.frames)
    assert len(requests) >= 2
    assert [each.packet_findings for each in frames if each.packet_findings] == []
    assert capture.health.bytes.unaccounted == 0
    assert not capture.health.tls
